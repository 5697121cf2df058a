#pragma once

// What users, which are namespaces here, have used lately of queues with fair share
// (core/order/fair_share.h). Statuses of Queues have it, so that the next leader and clients go on
// from there: jobs that still run count from then on, and of those that ended since, what they used
// since is lost, a minute at most. For one thread.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

class UseBook {
 public:
  // Takes what the queue's status says, unless it was counted here already.
  void Recover(const std::string& queue, const nlohmann::json& status);
  // Counts what jobs have used until `now`, and puts it into the snapshot's queues. To be called
  // before jobs change, and once all are known.
  void Count(TimeMs now, Snapshot& snapshot);
  // By namespace, without what jobs that run now have used since then.
  std::map<std::string, double> Of(const std::string& queue, TimeMs half_life, TimeMs now) const;
  // status.usedLately; null without fair share. While jobs run it changes once a minute.
  std::shared_ptr<const nlohmann::json> StatusOf(const std::string& queue, TimeMs now);

 private:
  struct Use {
    TimeMs as_of = 0;  // since then none of its jobs ran, or nothing has been counted
    std::map<std::string, double> seconds;
    std::shared_ptr<const nlohmann::json> told;
    TimeMs told_at = 0;
  };

  // Of the resource that counts now; null: nothing is known.
  const Use* Find(const std::string& queue) const;

  // By queue, then by resource: GPUs may be out of sight for a while, held by others' pods or their
  // nodes gone, and what was used of them is not forgotten meanwhile.
  std::map<std::string, std::map<std::string, Use>> queues_;
  std::string counted_;  // the resource that counts now; before Count(), that of a status
};

}  // namespace renzan::cluster::kubernetes
