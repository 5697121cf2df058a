#pragma once

// The daemon without its threads, sockets and clock: takes events (processes that end, time) and
// commands, runs the scheduler, and has its decisions carried out. For one thread, the loop's.
//
// Every transition is committed to the store before it is carried out: see transition_log.h.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/access.h"
#include "renzan/cluster/local/controller/artifact_collector.h"
#include "renzan/cluster/local/controller/attempt_plan.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/disk_watch.h"
#include "renzan/cluster/local/controller/inherited_files.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/job_runner.h"
#include "renzan/cluster/local/controller/job_view.h"
#include "renzan/cluster/local/controller/learned_run_times.h"
#include "renzan/cluster/local/controller/node_health.h"
#include "renzan/cluster/local/controller/node_manager.h"
#include "renzan/cluster/local/controller/pool_observer.h"
#include "renzan/cluster/local/controller/progress_tracker.h"
#include "renzan/cluster/local/controller/retention.h"
#include "renzan/cluster/local/controller/transition_log.h"
#include "renzan/cluster/local/controller/usage_ledger.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/record/cycle.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/inherited.h"
#include "renzan/cluster/spec/job_change.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

struct Submission {
  spec::JobSpec spec;  // resolved: working_directory is absolute
  std::string source, submit_dir;
  std::string manifest;  // JSON
  Caller caller;
  std::optional<spec::Inherited> inherited = {};  // none: from a client of an earlier version
};

struct JobChanged {
  RecordState state = RecordState::kPending;
  std::string what;  // "priority 0 -> 5"; empty: it was so already
};

struct ControllerOptions {
  std::string state_dir;
  uid_t uid = 0;                             // of the daemon
  Enforced enforced = {};                    // as ClusterConfig says
  std::optional<int64_t> machine_gpus = {};  // ClusterState::machine_gpus
  std::function<Decisions(const Snapshot&)> schedule;
  std::function<Validated(const Snapshot&, Decisions)> validate;
  // Why a job can never run here; "" if it can.
  std::function<std::string(const Snapshot&, const Job&)> why_infeasible;
  spec::ClusterConfig::LimitsConfig limits = {};
  RetentionOptions retention = {};
  spec::ClusterConfig::NodeHealthConfig node_health = {};
  TimeMs artifacts_timeout_ms = 600'000;  // for copying a job's artifacts
  bool reserve_room = false;              // Store::ReserveRoom()
  int64_t keep_free = 0;  // bytes of the state directory's file system; 0: it is not watched
  std::function<std::optional<DiskRoom>(const std::string&)> room_of = RoomOn;
  // Called with each cycle before its decisions are carried out.
  std::function<void(const Snapshot&, const Decisions&,
                     const std::function<record::JobName(JobId)>&)>
      on_cycle = {};
};

class Controller {
 public:
  // `cluster` is the configured one, without jobs; store, agent and clock outlive the controller.
  Controller(const ControllerOptions& options, Snapshot cluster, Store& store, Agent& agent,
             const Clock& clock);

  // Call it once, before anything else: takes over what the previous daemon left.
  void Recover();

  // --- Events.
  // Handles what has changed, and schedules if that could change anything. Returns when to call it
  // again at the latest (kNever: only after another event). Throws Error kData when the store is
  // corrupt; a full disk is logged and tried again.
  TimeMs Turn();
  const WatchedProcesses& watched() const { return state_.watched; }
  void ProcessEnded(JobId job) { runner_.ProcessEnded(job); }

  // --- Commands. Throw Error: kNoInput (no such thing), kNoPermission (also: beyond a limit),
  // kUsage (not in this state), kConfig (a job that cannot run), kIo (disk full: nothing has
  // changed).
  JobId Submit(const Submission& submission);
  RecordState Cancel(JobId job, const Caller& caller);
  RecordState Preempt(JobId job, const Caller& caller);
  void Checkpoint(JobId job, const Caller& caller);
  // The job does not start (again) until it is released; its workers stay. An operator's hold is
  // only released by an operator.
  RecordState Hold(JobId job, const Caller& caller);
  RecordState Release(JobId job, const Caller& caller);
  // Needs the rights that submitting the job so would need. The queue of a job can be changed only
  // while it is pending.
  JobChanged Update(JobId job, const spec::JobChange& change, const Caller& caller);
  // Nothing starts on the node until it is restored; its workers stay.
  void Cordon(const std::string& node, const Caller& caller);
  // With a notice the node goes away after it. Without one nothing starts there until it is
  // restored: jobs that can save their work are moved away, others may finish.
  void Drain(const std::string& node, std::optional<TimeMs> notice_ms, const Caller& caller);
  void FailNode(const std::string& node, const Caller& caller);
  // Returns what has to happen before it is ready: "its old workers have ended"; "": nothing.
  std::string Restore(const std::string& node, const Caller& caller);
  void OverrideQuota(const std::string& user, int64_t max_gpus, TimeMs for_ms,
                     const Caller& caller);

  // --- Queries.
  const Snapshot& snapshot();       // as of now
  Snapshot SnapshotForEstimates();  // with Job::run_time_now
  JobView View(JobId job);
  // What is known without looking anywhere else; of a job that has not ended, without its texts.
  JobRecord Record(JobId job);
  // With `ended.before` (the next page) only jobs that have ended.
  JobList List(const JobFilter& filter);
  // Of all jobs ever, up to now.
  std::map<QueueAndUser, UsageRecord> UsageUntilNow() const { return usage_.Sums(Unfinished()); }
  // Of the attempts that have not ended, up to now.
  std::vector<UsageSpan> RunningUsage() const;
  // What the run time of such a job, submitted now, is expected to be.
  RunTimeQuantiles PredictRunTime(const JobTraits& traits) { return run_times_.Predict(traits); }
  // Which invariant the scheduler's last decisions violated, so that some were not carried out; or
  // "".
  const std::string& violation() const { return violation_; }
  // What is wrong with jobs and nodes; decisions that involve them are not carried out.
  const std::vector<std::string>& faults() const { return faults_; }
  // Why the last turn failed, so that nothing proceeds until one succeeds (a full disk); or "".
  const std::string& trouble() const { return trouble_; }
  const DiskWatch& disk() const { return disk_; }
  const RetentionOptions& retention() const { return options_.retention; }
  Store& store() { return store_; }
  const UsageLedger& usage() const { return usage_; }
  PoolObserver& pools() { return pools_; }
  const AccessControl& access() const { return access_; }
  const JobDirectories& directories() const { return directories_; }
  TimeMs Now() const { return NowMs(clock_); }

 private:
  void RecoverDamagedJobs();
  void RecoverJob(JobRecord record);
  std::vector<Reservation> RecoveredReservations();
  void ClockWentBack(TimeMs now);
  // Notices when the clock was set forward, which is no time that passed.
  void CheckClock(TimeMs now);
  void ClockJumped(TimeMs by);
  void WatchDisk(TimeMs now, bool at_once = false);
  void ReserveRoom();
  void ReserveLogRoom() const;
  void UpdateHeld();
  void SetHold(LiveRecord& live, const std::string& by, const char* kind, const Caller& caller);
  void RequireMayChangeTo(const spec::JobSpec& after, const LiveRecord& live,
                          const Caller& caller) const;
  Job MovedJob(const spec::JobSpec& after, const LiveRecord& live);
  void AdvanceNodes();
  void Schedule();
  JobId Admit(const Submission& submission);
  PendingUse PendingUseOf(const Caller& caller) const;
  // Fails unless the job is `owner`'s, whether it has ended or not.
  LiveRecord& Live(JobId job, const Caller& owner);
  LiveRecord& Running(JobId job, const Caller& owner);
  std::vector<const JobRecord*> Unfinished() const;
  JobView ViewOf(const JobRecord& record);

  const ControllerOptions options_;
  Store& store_;
  Agent& agent_;
  const Clock& clock_;
  const AccessControl access_;
  const JobDirectories directories_;
  const InheritedFiles inherited_;
  DiskWatch disk_;
  ClusterState state_;
  // Each of these uses those before it.
  PoolObserver pools_;
  UsageLedger usage_;
  TransitionLog log_;
  ArtifactCollector collector_;
  Retention retention_;
  ProgressTracker progress_;
  NodeManager nodes_;
  NodeChecker checker_;
  NodeHealth health_;
  JobRunner runner_;

  LearnedRunTimes run_times_;
  JobId last_job_ = 0;
  TimeMs last_turn_ = 0;
  TimeMs clock_checked_ = 0;  // and the monotonic time then
  double clock_checked_at_ = 0;
  TimeMs room_reserved_ = 0;
  std::string no_room_;  // why none could be reserved
  std::string trouble_;
  // Of the last scheduling cycle.
  std::map<JobId, WaitReason> waits_;
  std::string violation_;
  std::vector<std::string> faults_;
  TimeMs schedule_at_ = kNever;  // even if nothing has changed
};

}  // namespace renzan::cluster::local
