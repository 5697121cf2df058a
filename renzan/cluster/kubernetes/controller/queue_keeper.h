#pragma once

// Queues: which specs are in force, and what the statuses say about that and about use.
//
// An invalid spec changes nothing: the last valid one stays in force, also for the next leader
// (status.holds). Whether the guaranteed resources exist is a separate question, which depends on
// the nodes: it is reported, and changes nothing either.
//
// For one thread.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/kept_status.h"
#include "renzan/cluster/kubernetes/controller/use_book.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"
#include "renzan/cluster/kubernetes/objects/queue.h"
#include "renzan/cluster/spec/queue_parents.h"

namespace renzan::cluster::kubernetes {

class QueueKeeper {
 public:
  // `serves_admission`: as ControllerOptions has it.
  explicit QueueKeeper(bool serves_admission) : serves_admission_(serves_admission) {}

  // As a watch shows it.
  void Put(std::shared_ptr<const Json> object);
  void Remove(const std::string& name);

  // By name.
  std::map<std::string, QueueSpec> holding() const;
  // Whether that has changed since the last call. True at first.
  bool TakeChanged() { return std::exchange(changed_, false); }

  // What is wrong with the parents of those, for the statuses.
  void SetParentFaults(std::vector<spec::ParentFault> faults) { faults_ = std::move(faults); }

  // Counts what jobs have used of queues with fair share: UseBook::Count(). The first time it goes
  // on from what the statuses say.
  void CountUse(TimeMs now, Snapshot& snapshot);

  // Whether the job's submitter was found to be one of its queue's members.
  spec::Submitter::Checked WasSubmitterChecked(const GangJob& job) const;

  // Writes the statuses that have changed; those of all queues every few seconds, however busy they
  // are. False: something failed; the next call tries again.
  bool Flush(const Snapshot& snapshot, Requests& requests, TimeMs now);
  // When Flush() next has something to do even if no Queue changes.
  TimeMs NextFlush() const;

 private:
  struct Known {
    KeptStatus status;
    QueueSpec spec;
    std::string accepted;  // the spec, as written; empty: none was ever valid
    std::string wrong;     // why the object's spec is not in force; empty: it is
  };

  void Take(const Json& spec, Known& known);

  const bool serves_admission_;
  std::map<std::string, Known> known_;
  std::vector<spec::ParentFault> faults_;
  UseBook use_;
  bool changed_ = true;
  TimeMs flush_at_ = 0;
};

}  // namespace renzan::cluster::kubernetes
