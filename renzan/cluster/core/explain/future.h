#pragma once

// One possible future of a cluster: how long each job runs, and what is submitted when, are drawn.
// Draws are keyed by the number of the future and of the job, so the same snapshot has the same
// futures. Stops and boots take the time they may take, and nothing fails. Not thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/explain/cycle_budget.h"
#include "renzan/cluster/core/explain/free_room.h"
#include "renzan/cluster/core/explain/submissions.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Of a job, the draws of these many futures are in different parts of its distribution.
inline constexpr int kFutures = 9;

// Of the jobs that ended before the awaited job started.
struct Ends {
  int all = 0;
  int expected = 0;  // the end was known or limited (Job::expected_end), not drawn
  int unlike = 0;    // drawn, but too few jobs had ended to predict its run time
};

class Future : private Environment {
 public:
  // Of the arguments, `options` and `submissions` must outlive it. `number`: below kFutures.
  Future(const Snapshot& snapshot, JobId awaited, const ScheduleOptions& options,
         const Submissions& submissions, int number);

  enum class Outcome { kStarts, kNeverStarts, kOutOfCycles };
  // Runs until the awaited job starts, for kHorizon at most. Events far ahead share a cycle, so
  // about 16 cycles are enough however many jobs end before. Between cycles, the room of a job that
  // ends goes to the first in the queue that fit there (free_room.h).
  static constexpr TimeMs kHorizon = 100 * 24 * kHour;
  Outcome Run(CycleBudget& budget, int max_cycles);

  TimeMs start() const { return start_; }
  const Ends& ends() const { return ends_; }

 private:
  enum class What { kJob, kNode, kSubmission, kCycle };
  using Subject = std::pair<What, int64_t>;

  void Expect(Subject subject, TimeMs when);  // kNever: not any more
  TimeMs Next() const { return due_.empty() ? kNever : due_.begin()->first; }
  bool Advance(double share);
  void Handle(Subject subject);
  void HandleJob(Job& job);
  void Meet(const Job& job);
  void Runs(const Job& job);
  void ExpectSubmission();
  void FormLine(const Decisions& decisions);
  bool MayTakeOver(const Job& job) const;
  void JoinLine(const Job& job);
  void HandOver(const Job& ended);
  void Submit();

  void Perform(const Start& start) override;
  void Perform(const Stop& stop) override;
  void Perform(const Resize& resize) override;
  void Perform(const CheckpointRequest&) override {}
  void Perform(const NodeChange&) override {}

  Snapshot snapshot_;
  const JobId awaited_;
  const ScheduleOptions& options_;
  const Submissions& submissions_;
  const int number_;
  const TimeMs begin_;
  JobId last_job_ = 0;
  TimeMs batch_begin_;     // the first event since the last cycle
  TimeMs start_ = kNever;  // of the awaited job
  int64_t submitted_ = 0;
  TimeMs last_submission_;
  Ends ends_;
  // Jobs that wait for room, in the order of the last cycle; those submitted since are inserted.
  struct Waiting {
    Rank rank;
    int queue;
    JobId job;
    int request, workers;
  };
  std::vector<Waiting> line_;
  std::optional<FairShares> fair_shares_;  // in the last cycle
  FreeRoom free_;                          // as far as `line_` may take it
  std::map<JobId, TimeMs> run_times_;      // in all, with all workers
  std::map<Subject, TimeMs> when_;
  std::set<std::pair<TimeMs, Subject>> due_;
};

}  // namespace renzan::cluster
