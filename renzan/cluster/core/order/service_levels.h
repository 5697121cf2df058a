#pragma once

// Least attained service: of jobs with equal priority, those that have got less service so far go
// first, and may preempt those that have got more. Service is counted in a few levels (discretized
// LAS; Gu et al., "Tiresias", NSDI 2019), so that a job is not preempted for small differences, and
// by first come within a level. Run times need not be known: most jobs are short and never leave
// the first level, and the few long ones share what they leave over.
//
// If a long job has started early, preempting it corrects that, unless it would lose its work or
// must not be stopped. For such a job its expected need (Job::run_time) counts from the beginning:
// among jobs that must run to their end, the shorter go first.
//
// With ServiceLevelOptions::gittins the prediction counts from the beginning for every job
// (gittins.h), whether it can be preempted or not.
//
// A level only rises. Pure functions of the snapshot.

#include <optional>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct ServiceLevelOptions {
  // A job moves to the next level above each of these amounts of service. Empty: all jobs are on
  // one level, in the order of submission.
  std::vector<TimeMs> thresholds_ms = {kHour, 4 * kHour, 16 * kHour, 64 * kHour, 256 * kHour};
  bool gittins = false;
  // A job is preempted by one on a lower level, and loses workers above its minimum to an equal,
  // only after running this many times as long as saving and restarting takes; it is preempted
  double min_run_per_cost = 10;
  // only as long as all its preemptions together take no more than this share of its run time.
  double max_overhead_share = 0.01;
};

class ServiceLevels {
 public:
  ServiceLevels(const Snapshot& snapshot, const ServiceLevelOptions& options);

  int Of(const Job& job) const { return levels_[&job - first_]; }
  int top() const { return static_cast<int>(options_->thresholds_ms.size()); }

  // Whether a running job may be preempted by one on a lower level: it saves its work when stopped,
  // and has run long enough for what that costs.
  bool MayBePreempted(const Job& job) const { return may_be_preempted_[&job - first_]; }

  // Whether a running job has run long enough since its start to restart with fewer workers in
  // favour of an equal: nobody waits longer for those than min_run_per_cost restarts take.
  bool MayShrinkForEquals(const Job& job) const { return now_ >= MayShrinkForEqualsFrom(job); }
  TimeMs MayShrinkForEqualsFrom(const Job& job) const {
    return MayBePreemptedFrom(job, job.started);
  }

  // Whether a running job may restart in order to grow from `workers` by `more`: if what that costs
  // is at most max_overhead_share of the time by which it will probably end sooner. If nothing is
  // known of jobs like it, it may.
  bool MayGrow(const Job& job, int workers, int more) const;

  // When the level of a job that has run with this many workers since `started`, or the answer of
  // MayBePreempted() or MayShrinkForEquals(), changes next; kNever if it does not.
  TimeMs NextChange(const Job& job, int workers, TimeMs started) const;

 private:
  int LevelAt(const Job& job, int64_t worker_ms) const;
  // When a job that runs with this many workers will have had this much worker time.
  TimeMs WhenItHas(int64_t worker_ms, const Job& job, int workers) const;
  // Since when it may be preempted, if it has run since `started` and saves its work.
  TimeMs MayBePreemptedAt(const Job& job, TimeMs started) const;
  // The time as far as the current run decides it.
  TimeMs MayBePreemptedFrom(const Job& job, TimeMs started) const;

  const TimeMs now_;
  const ServiceLevelOptions* options_;
  const Job* first_;
  // By position in Snapshot::jobs.
  std::vector<int> levels_;
  std::vector<bool> may_be_preempted_;
};

// What the job has got: the time that it has had workers, as if it had held no more than its
// minimum; twice as many workers are twice the service. By its minimum, because that is what it
// holds at least: a maximum that it never gets must not make its service look small.
TimeMs ServiceOf(const Job& job, TimeMs now);
// How far it is: the time that it has run, as if with all of its workers. What run times are
// predicted in (predict/run_times.h).
TimeMs ProgressOf(const Job& job, TimeMs now);
// The service by which a job with `service` is ranked: at least its expected need, if it cannot be
// preempted without a loss.
TimeMs RankedService(const Job& job, TimeMs service);

}  // namespace renzan::cluster
