#pragma once

// What jobs have used, what queues have lent to each other, and what users have used lately of
// queues with fair share, in the store up to accounted_until(), and from there on computed from
// what runs now. So a daemon that is started again goes on with the same values.

#include <algorithm>
#include <map>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class UsageLedger {
 public:
  UsageLedger(const Snapshot& snapshot, Store& store, const Clock& clock)
      : snapshot_(snapshot), store_(store), clock_(clock) {}

  // Jobs may have run while there was no daemon: that time counts. Until Recovered(), commits do
  // not advance accounted_until(), because not all jobs are in the snapshot yet.
  void Recover();
  void Recovered() { recovering_ = false; }
  // The time up to which a transition at `time` accounts for usage.
  TimeMs Until(TimeMs time) const {
    return recovering_ ? accounted_until_ : std::max(time, accounted_until_);
  }
  // Within a transaction: stores everything up to `until`, before the snapshot changes.
  void Put(TimeMs until);
  // Call it once that transaction is on disk.
  void Committed(TimeMs until);
  TimeMs accounted_until() const { return accounted_until_; }
  void ClockWentBack(TimeMs now);
  // The time by which it jumped is not counted.
  void ClockJumped(TimeMs by) { accounted_until_ += by; }

  // The job's usage up to now.
  UsageRecord Of(JobId job) const;
  // The usage of all jobs ever; `unfinished` are those that have not ended.
  std::map<QueueAndUser, UsageRecord> Sums(const std::vector<const JobRecord*>& unfinished) const;
  std::vector<LoanRecord> Loans() const;
  // Of queues with fair share, by each user who has ever used them.
  std::map<QueueAndUser, double> UsedLately(TimeMs now) const;
  // Puts that into the queues, as of Snapshot::now.
  void SetUsedLately(Snapshot& snapshot) const;
  // Of the attempt that has not ended, up to now.
  UsageSpan SpanOf(const JobRecord& job, const AttemptRecord& attempt) const;

 private:
  UsageRecord UsageSince(const Job& job, TimeMs until) const;
  std::vector<LoanRecord> LoansAfter(double seconds) const;
  // By those who have jobs that run.
  std::map<QueueAndUser, UsedLatelyRecord> UsedLatelyByRunning(TimeMs until) const;

  const Snapshot& snapshot_;
  Store& store_;
  const Clock& clock_;
  TimeMs accounted_until_ = 0;
  bool recovering_ = false;
  // As stored, of the kind that counts; and as it will be once the transaction is on disk.
  std::map<QueueAndUser, UsedLatelyRecord> used_lately_, next_used_lately_;
};

// The part of it that was used from `from` until before `to`.
UsageRecord UsedWithin(const UsageSpan& span, TimeMs from, TimeMs to);

}  // namespace renzan::cluster::local
