#pragma once

// The simulated cluster: the snapshot that policies see, and the state of jobs hidden from them:
// how much work they have, how much is done, and how much of that is saved. Independent of events;
// a Lifecycle (core/engine/lifecycle.h) changes the states of jobs. Not thread-safe.
//
// Work is counted in whole worker-milliseconds: a gang of w workers does w of them per millisecond,
// so an elastic job runs at a speed of workers / max_workers, without rounding errors. All resource
// time that a job gets is useful, lost or overhead: the three add up exactly.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "renzan/cluster/core/engine/job_facts.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

// The outcome of a job. Amounts in worker-milliseconds.
struct JobRecord {
  JobId id = 0;
  int queue = 0;
  int64_t gpus = 0;  // of all its workers
  int64_t gpus_per_worker = 0;
  TimeMs submitted = 0;
  std::optional<TimeMs> first_start, end;
  TimeMs waited_ms = 0;   // total time pending, including after preemptions
  int preemptions = 0;    // stops by the policy, without drains
  int drains = 0;         // stops and moves of jobs on draining nodes
  int node_failures = 0;  // that interrupted it
  int resizes = 0;        // and moves, without drains
  int failures = 0;       // of its own
  bool failed = false;    // it ended with a failure
  int64_t useful = 0;     // work that was not repeated
  int64_t lost = 0;       // work that had to be repeated
  int64_t overhead = 0;   // time held while restarting, saving, or waiting for other workers
};

// A job ran, or waited, with this many workers. Runs do not include the time that stopping takes.
struct Interval {
  JobId job = 0;
  TimeMs begin = 0, end = 0;
  int workers = 0;
};

class SimulatedCluster {
 public:
  // `cluster` may have jobs, even running ones: Adopt() each of them first.
  explicit SimulatedCluster(Snapshot cluster);

  const Snapshot& snapshot() const { return snapshot_; }
  // For the Lifecycle only; the methods below say when they are to be called.
  Snapshot& facts() { return snapshot_; }
  const std::vector<PendingJob>& pending() const { return pending_; }
  const std::vector<Resources>& free() const { return free_; }
  const std::map<JobId, Placement>& held() const { return held_; }
  std::vector<JobRecord> records() const;
  const std::vector<Interval>& runs() const { return runs_; }
  const std::vector<Interval>& waits() const { return waits_; }
  // Changes whenever the job's state changes; events scheduled at an older version are void.
  int64_t version(JobId job) const { return life(job).version; }

  void SetTime(TimeMs now);
  TimeMs now() const { return snapshot_.now; }

  // Adds a job to be submitted later; ids must increase.
  void Plan(JobId id, const WorkloadJob& job);
  // Takes over a job that is already in the snapshot. Returns the time of its next event, kNever
  // for a pending job. `work_left` is in worker-milliseconds.
  TimeMs Adopt(const Job& job, int64_t work_left);
  void Submit(JobId id);

  // What a journal keeps of a job that has not ended.
  struct Recorded {
    JobFacts facts;
    AttemptFacts attempt;
  };
  Recorded& recorded(JobId id) { return *life(id).recorded; }
  const Recorded& recorded(JobId id) const { return *life(id).recorded; }
  RetryPolicy RetriesOf(JobId id) const;

  // After the job has started, or was told to stop or to move. Both return when its attempt ends if
  // undisturbed. CHECK that it fits.
  TimeMs Started(JobId id);
  TimeMs Stopped(JobId id);
  // Its workers end and leave their room: they have done their work, have failed or have stopped,
  // or a node of them fails. Before the transition.
  AttemptEnd EndAttempt(JobId id, bool node_failed);
  // Gives up the room where it was to move, before it is evicted.
  void LoseTarget(JobId id);
  // It has been requeued, and is eligible.
  void Enqueue(JobId id);
  // It has ended.
  void Remove(JobId id);
  // Saves its work so far. Does nothing for a job that does not checkpoint or is still restarting.
  void Checkpoint(JobId id);

  // Places workers that wait for the rest of their gang. If these were the last, the room is free
  // again, and returned for the job to start there.
  std::optional<Placement> Hold(const simulate::Hold& hold);
  // If the job is running, before it is stopped: the other workers stay placed after that.
  void Evict(const simulate::Evict& evict);
  // Releases everything that a partially placed job holds.
  void ReleaseHeld(JobId id);

  // When the attempt of a running job would end if undisturbed; how long that of a pending job
  // would take with that many workers.
  TimeMs EndTime(JobId id) const;
  TimeMs RunTime(JobId id, int workers) const;
  // With Job::run_time_now.
  Snapshot SnapshotForEstimates() const;
  // The time of all its attempts on one worker if none of them saves anything, with its pauses.
  TimeMs LongestTime(JobId id) const;

  void SetNode(int node, NodeState state, TimeMs until);
  // To be called before and after a node is changed or added otherwise.
  void BeginNodeChange(int node);
  void FinishNodeChange(int node);
  // Nothing runs there any more.
  void FailNode(int node);

  int64_t busy_gpus() const { return busy_gpus_; }           // held by jobs
  int64_t idle_gpus() const { return idle_gpus_; }           // free on nodes that are ready
  double price_per_hour() const { return price_per_hour_; }  // of all nodes that are not gone
  int64_t present_gpus() const { return present_gpus_; }     // on nodes that are ready or draining

 private:
  struct JobLife {
    WorkloadJob job;
    JobRecord record;
    std::unique_ptr<Recorded> recorded;  // from its submission to its end
    int64_t work = 0;                    // in total
    int64_t saved = 0;                   // done and saved
    int64_t at_start = 0;                // done at the last start
    int64_t done = 0;                    // while stopping: done when the stop began
    TimeMs productive_from = 0;          // while running: the end of the restart
    TimeMs since = 0;                    // last change of its state
    TimeMs held_since = 0;               // last change of what it holds without running
    TimeMs next_checkpoint = kNever;
    int64_t version = 0;
    Placement keeps;  // while stopping for an eviction: the workers that stay placed
  };

  JobLife& life(JobId id);
  const JobLife& life(JobId id) const;
  Job& Get(JobId id);
  void UpdateFree(int node);
  void Occupy(const Job& job, const Placement& placement, int sign);
  void Enqueue(const Job& job, JobLife& life);
  void Dequeue(const Job& job, JobLife& life);
  TimeMs FailsAfter(const JobLife& life) const;
  int64_t DoneAt(const JobLife& life, const Job& job, TimeMs when) const;
  void CloseRun(const Job& job, JobLife& life);
  void CloseHeld(JobLife& life, const Placement& held);
  void Count(const Node& node, int sign);
  void ScheduleCheckpoint(JobId id, JobLife& life, TimeMs when);

  Snapshot snapshot_;
  std::vector<JobLife> lives_;  // sorted by id
  std::vector<PendingJob> pending_;
  std::vector<Resources> used_, free_;
  std::vector<int> workers_on_;
  std::map<JobId, Placement> held_;
  std::set<std::pair<TimeMs, JobId>> checkpoints_due_;
  int64_t busy_gpus_ = 0, idle_gpus_ = 0, present_gpus_ = 0;
  double price_per_hour_ = 0;
  std::vector<Interval> runs_, waits_;
  RunTimes run_times_;
};

}  // namespace renzan::cluster::simulate
