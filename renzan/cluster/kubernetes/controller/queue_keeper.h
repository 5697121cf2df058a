#pragma once

// Queues: what holds of each, and what their statuses say about that and about their use.
//
// A spec that cannot be used changes nothing: the last one that was right goes on to hold, for the
// next leader, too (status.holds). Whether what is guaranteed exists is another matter, which
// changes with nodes: that is said, and changes nothing either.
//
// For one thread.

#include <map>
#include <string>
#include <utility>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/kept_status.h"
#include "renzan/cluster/kubernetes/objects/queue.h"

namespace renzan::cluster::kubernetes {

class QueueKeeper {
 public:
  // As a watch shows it.
  void Put(std::shared_ptr<const Json> object);
  void Remove(const std::string& name);

  // By name.
  std::map<std::string, QueueSpec> holding() const;
  // Whether, since the last call, that has changed. True at first.
  bool TakeChanged() { return std::exchange(changed_, false); }

  // Writes the statuses that have changed, of all queues every few seconds, however busy they are.
  // False: something failed; it is tried again by the next call.
  bool Flush(const Snapshot& snapshot, Requests& requests, TimeMs now);
  // When Flush() has something to do though no Queue has changed.
  TimeMs NextFlush() const;

 private:
  struct Known {
    KeptStatus status;
    QueueSpec spec;
    std::string accepted;  // the spec, as it was written; empty: none was ever right
    std::string wrong;     // why that of the object does not hold; empty: it does
  };

  void Take(const Json& spec, Known& known);

  std::map<std::string, Known> known_;
  bool changed_ = true;
  TimeMs flush_at_ = 0;
};

}  // namespace renzan::cluster::kubernetes
