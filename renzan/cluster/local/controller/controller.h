#pragma once

// The daemon without its threads, sockets and clock: takes in what has happened (commands, attempts
// that ended, time), lets the scheduler decide, and carries it out. For one thread, the loop's.
//
// Every transition is written to the store before it is carried out, so that a kill -9 between any
// two steps leaves something that Recover() can finish. What is in memory follows the store: an
// Error kIo of a full disk leaves both as they were.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/access.h"
#include "renzan/cluster/local/controller/artifact_collector.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/node_manager.h"
#include "renzan/cluster/local/controller/outcome.h"
#include "renzan/cluster/local/controller/pool_observer.h"
#include "renzan/cluster/local/controller/progress_tracker.h"
#include "renzan/cluster/local/controller/retention.h"
#include "renzan/cluster/local/controller/run_status.h"
#include "renzan/cluster/local/controller/transition_log.h"
#include "renzan/cluster/local/controller/usage_ledger.h"
#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

struct Submission {
  spec::JobSpec spec;  // resolved: working_directory is absolute
  std::string source, submit_dir;
  std::string manifest;  // JSON
  Caller caller;
};

// All that is known about a job, copied.
struct JobView {
  JobRecord record;
  std::optional<Job> scheduled;  // while it has not ended
  NamedPlacement placement;      // while it has workers
  std::string reason;            // why it is pending, in a word
  std::optional<RunProgress> progress;
  Measured measured;
  std::string warning;  // what its owner should know; else empty
};

// Of what is listed: jobs that have not ended, and the newest of the others.
struct JobFilter {
  EndedFilter ended;      // queue, user and state are those of all
  int most_ended = 1000;  // of those that have ended
};
struct JobList {
  std::vector<JobView> jobs;  // sorted by id; without specification and manifest
  int64_t more = 0;           // have ended too, and are older
};

struct ControllerOptions {
  std::string state_dir;
  // Of the daemon: it and root may do everything.
  uid_t uid = 0;
  bool enforce_memory = true;  // as ClusterConfig says
  std::function<Decisions(const Snapshot&)> schedule;
  // What of the decisions may be carried out.
  std::function<Validated(const Snapshot&, Decisions)> validate;
  // Why a job can never run here; "" if it can.
  std::function<std::string(const Snapshot&, const Job&)> why_infeasible;
  spec::ClusterConfig::LimitsConfig limits = {};
  RetentionOptions retention = {};
  TimeMs artifacts_timeout_ms = 600'000;  // of copying a job's artifacts
};

class Controller {
 public:
  // `cluster` is the configured one, without jobs; store, agent and clock outlive the controller.
  Controller(ControllerOptions options, Snapshot cluster, Store& store, Agent& agent,
             const Clock& clock);

  // Once, first of all: takes up what the daemon before has left. A job that the configuration has
  // no place for any more is held (Job::held).
  void Recover();

  // --- What happens.
  // Deals with what has changed and schedules if that could change anything. Returns when it wants
  // to be called again at the latest (kNever: not by itself). Throws Error kData when the store is
  // corrupt; a full disk is logged and tried again.
  TimeMs Turn();
  // Processes to wait for: job and process. The end of one is to be reported.
  const std::map<JobId, pid_t>& watched() const { return state_.watched; }
  void ProcessEnded(JobId job) { changed_.insert(job); }

  // --- Commands. Throw Error: kNoInput (no such thing), kNoPermission (also: beyond a limit),
  // kUsage (not in this state), kConfig (a job that cannot run), kIo (disk full: nothing has
  // changed).
  JobId Submit(const Submission& submission);
  RecordState Cancel(JobId job, const Caller& caller);
  RecordState Preempt(JobId job, const Caller& caller);
  void Checkpoint(JobId job, const Caller& caller);
  // Nothing starts on the node any more, until it is restored; who runs there stays.
  void Cordon(const std::string& node, const Caller& caller);
  // The node vanishes after `notice_ms`; or nothing starts there until it is restored, who saves
  // its work leaves, and who cannot may end.
  void Drain(const std::string& node, std::optional<TimeMs> notice_ms, const Caller& caller);
  void FailNode(const std::string& node, const Caller& caller);
  // False: it is lost and will be ready once its last worker has gone.
  bool Restore(const std::string& node, const Caller& caller);
  void OverrideQuota(const std::string& user, int64_t max_gpus, TimeMs for_ms,
                     const Caller& caller);

  // --- Questions.
  // As of now.
  const Snapshot& snapshot();
  JobView View(JobId job);
  // With `ended.before`, which asks for more, only those that have ended.
  JobList List(const JobFilter& filter);
  Store& store() { return store_; }
  const UsageLedger& usage() const { return usage_; }
  // Of all jobs ever, up to now.
  std::map<QueueAndUser, UsageRecord> UsageUntilNow() const;
  PoolObserver& pools() { return pools_; }
  // What is wrong with the scheduler's last decisions, none of which were carried out; else empty.
  const std::string& refused() const { return refused_; }
  // What is wrong with jobs and nodes; decisions that touch them are not carried out.
  const std::vector<std::string>& faults() const { return faults_; }
  const AccessControl& access() const { return access_; }

  const JobDirectories& directories() const { return directories_; }
  TimeMs Now() const;

 private:
  // controller_commands.cc
  PendingUse PendingUseOf(const Caller& caller) const;
  JobId Take(const Submission& submission);
  static int64_t DropTexts(JobRecord& record);

  // controller_recover.cc
  void RecoverJob(JobRecord record);
  void Adopt(LiveJob& live, Job& job);

  // controller_end.cc
  void FinishEnded();
  AttemptReport ReportOn(const LiveJob& live);
  void KillLeftOvers(JobId job, const std::string& directory);
  void Finish(LiveJob& live, const std::optional<AttemptEnd>& end);
  void Release(Job& job);
  void Drop(JobId job);
  bool Fits(const Job& job, const Placement& placement) const;

  // controller_decisions.cc
  void Decide();
  void CarryOut(const Decisions& decisions);
  bool StartJob(LiveJob& live, const Placement& placement, bool backfill);
  AttemptPlan PlanOf(const LiveJob& live) const;
  NamedPlacement WithDevices(const Placement& placement, int64_t gpus_per_worker) const;
  void VoidAttempt(LiveJob& live, const std::string& why);
  void PreemptJob(LiveJob& live, const std::string& reason, JobId on_behalf_of);
  void ResizeJob(LiveJob& live, const NamedPlacement& target, JobId on_behalf_of);
  // Writes down that it has to stop, as `record` and `attempt` say, and tells it.
  void StopJob(LiveJob& live, JobRecord record, AttemptRecord attempt);
  void AskToStop(LiveJob& live);
  double GraceOf(const LiveJob& live) const;

  // controller_nodes.cc
  void AdvanceNodes();
  void EndWorkersOn(int node);
  void ResendStops(int node);
  bool EndOnFailedNode(LiveJob& live, const std::string& node);

  void ClockWentBack(TimeMs now);
  LiveJob& LiveNamed(JobId job);
  std::vector<const JobRecord*> Unfinished() const;
  JobView ViewOf(const JobRecord& record);
  NamedPlacement Named(const Placement& placement) const;

  const ControllerOptions options_;
  const AccessControl access_;
  const JobDirectories directories_;
  ClusterState state_;
  Store& store_;
  Agent& agent_;
  const Clock& clock_;
  PoolObserver pools_;
  UsageLedger usage_;
  TransitionLog log_;
  ArtifactCollector collector_;
  Retention retention_;
  ProgressTracker progress_;
  NodeManager nodes_;

  JobId last_job_ = 0;
  std::set<JobId> changed_;  // whose process has ended
  // Nodes that have failed and whose workers may not all have been ended.
  std::set<int> unsent_failures_;
  std::map<JobId, Wait> waits_;  // of the last cycle
  std::string refused_;
  std::vector<std::string> faults_;
  TimeMs look_again_ = kNever;
  TimeMs last_turn_ = 0;
};

}  // namespace renzan::cluster::local
