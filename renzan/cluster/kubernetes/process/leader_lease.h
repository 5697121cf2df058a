#pragma once

// Of several replicas of the controller, one leads: the one that holds a Lease and renews it.
//
// A Lease is not a fence: its former holder may be about to write when another replica has taken it
// over. So the holder stops writing (fenced_api.h) well before others may take the Lease. Writes
// sent before that are harmless: they carry the version that they replace, and names of pods their
// attempt.
//
// Times are only compared on one machine: a candidate measures by its own clock for how long the
// Lease has not changed. For one thread, except leads_until().

#include <atomic>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// The times are those of Kubernetes' own controllers: a server that is busy for some seconds must
// not cost the leadership.
struct LeaseOptions {
  std::string ns = "renzan-system";
  std::string name = "renzan-controller";
  std::string identity;  // unique among all processes ever run
  // Others may take the Lease over if it was not renewed for this long.
  double duration_seconds = 15;
  // The holder stops writing if it could not renew for this long.
  double renew_deadline_seconds = 10;
  double retry_seconds = 2;
};

class LeaderLease {
 public:
  // `api` and `clock` must outlive it.
  LeaderLease(LeaseOptions options, Api& api, const Clock& clock);

  // Tries to get or keep the Lease; call it every retry_seconds. Throws ApiError; a Lease that it
  // holds it then keeps until leads_until().
  void Try();
  // Gives the Lease up, so that others need not wait, also if this process took it without learning
  // of it: the server's answer was lost. Afterwards this process does not lead.
  void Release();

  // MonotonicSeconds() until which this process may write; thread-safe.
  double leads_until() const { return leads_until_; }
  bool leads() const { return clock_.MonotonicSeconds() < leads_until(); }
  // Who held it when it was last read; empty: nobody.
  const std::string& holder() const { return holder_; }

 private:
  void Observe(const Json& lease);
  Json Renewed(Json lease) const;

  const LeaseOptions options_;
  Api& api_;
  const Clock& clock_;
  std::string holder_, version_;
  double changed_at_ = 0;        // when another version was first seen here
  double held_for_seconds_ = 0;  // as its holder wrote it
  bool may_hold_ = false;        // has asked for the Lease, and not seen since that another has it
  std::atomic<double> leads_until_ = 0;
};

}  // namespace renzan::cluster::kubernetes
