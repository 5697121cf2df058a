#pragma once

// The simulated cluster: the snapshot that policies look at, and what only nature knows of its
// jobs: how much work is in them, how much of it is done, and how much of that would survive. Every
// change keeps the snapshot right in O(log n); nothing here knows about events. Not thread-safe.
//
// Work is counted in worker-milliseconds, in whole numbers: a gang of w workers does w of them per
// millisecond, so that an elastic job runs at a speed of workers / max_workers, and no rounding
// ever loses any. Everything a job was given is useful, lost or overhead: the three add up.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

// What became of a job. Amounts in worker-milliseconds.
struct JobRecord {
  JobId id = 0;
  int queue = 0;
  int64_t gpus = 0;  // of all its workers
  int64_t gpus_per_worker = 0;
  TimeMs submitted = 0;
  std::optional<TimeMs> first_start, end;
  TimeMs waited_ms = 0;  // all the time it was pending, also after preemptions
  int preemptions = 0;   // stops by the policy, but for those below
  int drains = 0;        // stops because a node was about to go
  int losses = 0;        // by nodes that vanished
  int resizes = 0;
  int64_t useful = 0;    // work that counted in the end
  int64_t lost = 0;      // work that had to be repeated
  int64_t overhead = 0;  // room held while starting again, saving, or waiting for other workers
};

// A job ran, or waited, with so many workers. Runs are without the time that stopping takes.
struct Interval {
  JobId job = 0;
  TimeMs begin = 0, end = 0;
  int workers = 0;
};

class SimulatedCluster {
 public:
  // `cluster` may have jobs, running ones too: Adopt() each before anything else. Unless `exact`,
  // jobs that have ended may stay in the snapshot for a while as jobs that are never eligible,
  // because taking each out at once would move all others.
  explicit SimulatedCluster(Snapshot cluster, bool exact = false);

  const Snapshot& snapshot() const { return snapshot_; }
  const std::vector<Waiting>& pending() const { return pending_; }
  const std::vector<Resources>& free() const { return free_; }
  const std::map<JobId, Placement>& held() const { return held_; }
  std::vector<JobRecord> records() const;
  const std::vector<Interval>& runs() const { return runs_; }
  const std::vector<Interval>& waits() const { return waits_; }
  // Changes whenever the job does: an event foreseen at an older one does not happen.
  int64_t version(JobId job) const { return life(job).version; }

  // Nothing before it can happen any more.
  void SetTime(TimeMs now);
  TimeMs now() const { return snapshot_.now; }

  // Adds a job to be submitted later; ids must rise.
  void Plan(JobId id, const WorkloadJob& job);
  // Takes over a job that is in the snapshot already, with so many worker-milliseconds left to do.
  // Returns when the next thing happens to it by itself, or kNever for a pending one.
  TimeMs Adopt(const Job& job, int64_t work_left);
  void Submit(JobId id);

  // All return when the next thing happens to the job by itself: its end, or the end of its stop.
  // Starts and growths that the nodes have no room for are a mistake of the policy: CHECKed.
  TimeMs Start(const cluster::Start& start);
  TimeMs Stop(const cluster::Stop& stop);
  TimeMs Resize(const cluster::Resize& resize);
  void FinishStop(JobId id);
  TimeMs FinishResize(JobId id);
  void End(JobId id);
  // Its work so far is saved. Nothing for a job that does not checkpoint or does not run yet.
  void Checkpoint(JobId id);

  // Workers that have a place but wait for the rest of their gang. Returns the end of the job if
  // that was the last.
  std::optional<TimeMs> Hold(const simulate::Hold& hold);
  // Returns when the workers are gone, if they ran.
  std::optional<TimeMs> Evict(const simulate::Evict& evict);
  // All places that the job holds without running.
  void GiveUpHeld(JobId id);

  // When the job would end, were it to run on undisturbed (a running one), or how long it would run
  // from a start with so many workers (a pending one).
  TimeMs EndTime(JobId id) const;
  TimeMs RunTime(JobId id, int workers) const;

  // Nodes. A lost node takes the jobs that have workers on it with it: back to the line, with what
  // they had saved. Losing one that is gone does nothing.
  int AddNode(const Node& node);
  void SetNode(int node, NodeState state, TimeMs until);
  void FailNode(int node);
  bool IsEmpty(int node) const { return workers_on_[node] == 0; }

  int64_t busy_gpus() const { return busy_gpus_; }           // held by anyone
  int64_t idle_gpus() const { return idle_gpus_; }           // free on nodes that are ready
  double price_per_hour() const { return price_per_hour_; }  // of all nodes that are not gone
  int64_t present_gpus() const { return present_gpus_; }     // on nodes that are ready or draining

 private:
  struct Life {
    WorkloadJob job;
    JobRecord record;
    int64_t work = 0;            // all there is
    int64_t saved = 0;           // of it, done and safe
    int64_t at_start = 0;        // what was done when it was started last
    int64_t done = 0;            // while it stops: what was done when it was told to
    TimeMs productive_from = 0;  // while it runs
    TimeMs since = 0;            // when its state changed last
    TimeMs held_since = 0;       // when its held places changed last
    TimeMs next_checkpoint = kNever;
    int64_t version = 0;
    Placement keeps;  // while it stops for an eviction: the places that it keeps
  };

  Life& life(JobId id);
  const Life& life(JobId id) const;
  Job& Get(JobId id);
  void UpdateFree(int node);
  void Occupy(const Job& job, const Placement& placement, int sign);
  void Enqueue(const Job& job, Life& life);
  void Dequeue(const Job& job, Life& life);
  TimeMs Run(Job& job, Life& life, const Placement& placement);
  TimeMs BeginStop(Job& job, Life& life, JobState state);
  int64_t DoneAt(const Life& life, const Job& job, TimeMs when) const;
  void CloseRun(const Job& job, Life& life);
  void CloseStop(const Job& job, Life& life, bool saved);
  void CloseHeld(Life& life, const Placement& held);
  void Interrupt(Job& job, Life& life);
  void Requeue(Job& job, Life& life);
  void ScheduleCheckpoint(JobId id, Life& life, TimeMs when);
  void RemoveEnded();

  Snapshot snapshot_;
  std::vector<Life> lives_;  // sorted by id
  std::vector<Waiting> pending_;
  std::vector<Resources> used_, free_;
  std::vector<int> workers_on_;
  std::map<JobId, Placement> held_;
  std::set<std::pair<TimeMs, JobId>> checkpoints_due_;
  const bool exact_;
  size_t ended_in_snapshot_ = 0;
  int64_t busy_gpus_ = 0, idle_gpus_ = 0, present_gpus_ = 0;
  double price_per_hour_ = 0;
  std::vector<Interval> runs_, waits_;
};

}  // namespace renzan::cluster::simulate
