#pragma once

// Which jobs does a queue's guarantee cover? First those that run and that nobody may stop: they
// never borrow, so what the queue has borrowed can always be taken back from the others. Then
// higher priority first, among equals those that run, then those that came first; a job that does
// not fit into what is left of the guarantee is skipped. Covered jobs are the queue's own: no other
// queue may take their place, and they may take back what others have borrowed.
//
// Rank is (within quota, priority), and nobody is ever stopped but for a job of higher rank. Being
// within quota does not depend on what a cycle decides, so a chain of preemptions always climbs and
// ends.

#include <functional>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class Entitlement {
 public:
  // `may_start`: whether a pending job could start at all; one that could not holds nothing.
  Entitlement(const Snapshot& snapshot, const std::function<bool(const Job&)>& may_start);

  bool WithinQuota(const Job& job) const { return within_quota_[&job - first_]; }
  // a's rank is above b's.
  bool Outranks(const Job& a, const Job& b) const {
    return WithinQuota(a) != WithinQuota(b) ? WithinQuota(a) : a.priority > b.priority;
  }

 private:
  const Job* first_;
  std::vector<bool> within_quota_;  // by position in Snapshot::jobs
};

}  // namespace renzan::cluster
