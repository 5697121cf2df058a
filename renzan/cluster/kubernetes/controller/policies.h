#pragma once

// ClusterPolicies: which one is in force, and what their statuses say about it. For one thread.

#include <map>
#include <string>
#include <utility>

#include "renzan/cluster/kubernetes/controller/kept_status.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"

namespace renzan::cluster::kubernetes {

class Policies {
 public:
  void Put(std::shared_ptr<const Json> object);
  void Remove(const std::string& name);

  // The last valid policy; the defaults if there never was one.
  const ClusterPolicy& current() const { return current_; }
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Writes statuses. False: something failed; the next call tries again.
  bool Flush(Requests& requests, TimeMs now);

 private:
  struct Known {
    KeptStatus status;
    std::string wrong;  // why it is not in force; empty: it is
  };

  void Take(const Json& spec);

  std::map<std::string, Known> known_;
  ClusterPolicy current_;
  std::string accepted_;  // the spec of the current one
  bool changed_ = true;
};

}  // namespace renzan::cluster::kubernetes
