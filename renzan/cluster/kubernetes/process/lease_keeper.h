#pragma once

// Gets and keeps the controller's Lease, in a thread of its own, until it is destroyed.

#include <functional>
#include <string>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/process/leader_lease.h"

namespace renzan::cluster::kubernetes {

class LeaseKeeper {
 public:
  // `on_change` is called in its thread when this process begins or ceases to lead. `clock` must
  // outlive it.
  LeaseKeeper(LeaseOptions options, const ApiFactory& make_api, std::function<void()> on_change,
              const Clock& clock);
  // Releases the Lease if this process holds it.
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Whether this process may write now; thread-safe.
  bool leads() const { return lease_.leads(); }
  // MonotonicSeconds() when the server last answered; thread-safe.
  double answered_at() const { return answered_at_; }

 private:
  void Keep(const std::stop_token& stop);

  const double retry_seconds_;
  const std::function<void()> on_change_;
  const Clock& clock_;
  const std::unique_ptr<Api> api_;
  LeaderLease lease_;
  std::atomic<double> answered_at_ = 0;
  std::jthread thread_;
};

}  // namespace renzan::cluster::kubernetes
