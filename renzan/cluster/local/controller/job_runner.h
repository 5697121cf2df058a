#pragma once

// Starts and stops the attempts of live jobs, and handles their ends. Every transition is committed
// first (TransitionLog::Commit), then memory follows, then the agent is asked to act. What fails
// after the commit is retried, by this daemon or by the next one (Adopt).

#include <map>
#include <optional>
#include <set>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/lifecycle.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/artifact_collector.h"
#include "renzan/cluster/local/controller/attempt_plan.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/inherited_files.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/node_health.h"
#include "renzan/cluster/local/controller/node_manager.h"
#include "renzan/cluster/local/controller/progress_tracker.h"
#include "renzan/cluster/local/controller/retention.h"
#include "renzan/cluster/local/controller/transition_log.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class JobRunner : private Journal, private Workers {
 public:
  struct Dependencies {
    ClusterState& state;
    TransitionLog& log;
    Store& store;
    Agent& agent;
    NodeManager& nodes;
    NodeHealth& health;
    ProgressTracker& progress;
    Retention& retention;
    ArtifactCollector& collector;
    const JobDirectories& directories;
    const InheritedFiles& inherited;
    const Clock& clock;
  };
  // An attempt that fails sooner than `early_failure_ms` after its start is an early failure.
  JobRunner(const Dependencies& with, const Enforced& enforced, TimeMs early_failure_ms)
      : state_(with.state),
        log_(with.log),
        store_(with.store),
        agent_(with.agent),
        nodes_(with.nodes),
        health_(with.health),
        progress_(with.progress),
        retention_(with.retention),
        collector_(with.collector),
        directories_(with.directories),
        inherited_(with.inherited),
        clock_(with.clock),
        lifecycle_(state_.snapshot, *this, *this, clock_),
        enforced_(enforced),
        early_failure_ms_(early_failure_ms) {}

  void CarryOut(const Decisions& decisions) { lifecycle_.CarryOut(decisions); }
  void Preempt(JobId job, const std::string& user) { lifecycle_.Stop(job, user); }
  // Removes a pending job, stops others. Returns the new state.
  RecordState Cancel(LiveRecord& live, const std::string& user);

  // The attempt gets what the job's time limit leaves to it.
  void SendTimeLimit(LiveRecord& live);

  // Supervisors end (or may have ended) at any time; FinishEnded() deals with them.
  void ProcessEnded(JobId job) { to_check_.insert(job); }
  void FinishEnded();

  // The node has failed: ends the workers on it without notice.
  void EndWorkersOn(int node);
  // Sends requests again that could not be written.
  void RetryEndWorkers();
  // The node's notice got shorter: jobs already stopping there get less grace.
  void ShortenGraceOn(int node);

  // Restores what has happened to a job from an earlier daemon, and takes over the attempt that
  // that one started, or was about to start. Nodes must have been recovered. May remove the job.
  void Adopt(LiveRecord& live);

 private:
  const JobFacts& FactsOf(JobId job) const override { return state_.live.at(job).record; }
  const AttemptFacts& AttemptOf(JobId job) const override {
    return state_.live.at(job).record.attempt.value();
  }
  void Commit(const Transition& transition) override;
  void Commit(const NodeChange& change) override { nodes_.Commit(change); }
  void Commit(const std::vector<std::pair<JobId, NamedPlacement>>& reservations,
              const std::vector<JobId>& no_longer_backfilled) override;

  NamedPlacement Assign(const Job& job, const Placement& placement) override;
  const Resources* Offered(int node) const override {
    return &state_.snapshot.nodes[node].capacity;
  }
  void Start(JobId job) override;
  void Stop(JobId job) override { SendStop(Live(job)); }
  void Checkpoint(JobId job) override { progress_.RequestCheckpointIfDue(Live(job)); }
  void Change(const NodeChange&) override { nodes_.ShareDevices(); }
  void Ended(JobId job, const Placement& placement, const EndedAttempt& how) override;

  LiveRecord& Live(JobId job) { return state_.live.at(job); }
  void SendStop(LiveRecord& live);
  double GraceOf(const LiveRecord& live) const;
  bool EndOnFailedNode(LiveRecord& live, const std::string& node);

  AttemptReport Report(const LiveRecord& live);
  AttemptEnd LostEnd(const LiveRecord& live) const;
  AttemptEnd EndWithoutStart(const LiveRecord& live, const std::string& why) const;
  void Finish(LiveRecord& live, const AttemptEnd& end);
  void CommitEnd(LiveRecord& live, const Transition& transition);
  void KillLeftOvers(JobId job, const std::string& directory);
  void Release(JobId job, const Placement& placement);
  void Remove(JobId job);

  void Restore(const LiveRecord& live, Job& job);
  bool MayHaveAnotherLimit(const LiveRecord& live) const;

  std::string DirectoryOf(const LiveRecord& live) const;
  TimeMs Now() const { return NowMs(clock_); }

  ClusterState& state_;
  TransitionLog& log_;
  Store& store_;
  Agent& agent_;
  NodeManager& nodes_;
  NodeHealth& health_;
  ProgressTracker& progress_;
  Retention& retention_;
  ArtifactCollector& collector_;
  const JobDirectories& directories_;
  const InheritedFiles& inherited_;
  const Clock& clock_;
  Lifecycle lifecycle_;
  const Enforced enforced_;
  const TimeMs early_failure_ms_;
  std::set<JobId> to_check_;  // their processes have ended, or could not be looked at
  std::set<int> unsent_;      // failed nodes: not all jobs on them have got the request
};

}  // namespace renzan::cluster::local
