#pragma once

// The state of one simulation; simulator.h is the interface. Not thread-safe.

#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/lifecycle.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

// The time of the cluster.
class VirtualClock : public Clock {
 public:
  explicit VirtualClock(const SimulatedCluster& cluster) : cluster_(cluster) {}
  double MonotonicSeconds() const override { return UnixSeconds(); }
  // In the middle of the millisecond, so that rounding does not change it.
  double UnixSeconds() const override { return (static_cast<double>(cluster_.now()) + 0.5) / 1000; }

 private:
  const SimulatedCluster& cluster_;
};

class Simulation : private Journal, private Workers {
 public:
  Simulation(Snapshot cluster, SimulatedPolicy& policy, const SimulatorOptions& options);

  void Plan(const Workload& workload);
  void Adopt(const std::vector<int64_t>& work_left);
  SimulationResult Run();

 private:
  enum class What {  // events at the same time are handled in this order
    kAttemptEnds,
    kMayStartAgain,
    kNodeReady,
    kNodeGone,
    kNodeNotice,
    kDeadlockTimeout,
  };
  struct Event {
    TimeMs time;
    What what;
    int64_t subject;  // job or node
    int64_t version;  // of the subject, when this was scheduled
    bool operator>(const Event& other) const {
      return std::tie(time, what, subject, version) >
             std::tie(other.time, other.what, other.subject, other.version);
    }
  };

  // simulation.cc: time.
  bool AllEnded() const { return ended_ + result_.rejected.size() == jobs_; }
  TimeMs NextTime() const;
  void AdvanceTo(TimeMs time);
  bool HandleDue();
  bool Handle(const Event& event);
  void SubmitNext();
  void Cycle();
  bool NothingCanChange() const;
  void Expect(TimeMs time, What what, int64_t subject, int64_t version);
  void ExpectOfJob(TimeMs time, What what, JobId job);

  // simulation_lives.cc: what happens to jobs.
  const JobFacts& FactsOf(JobId job) const override { return cluster_.recorded(job).facts; }
  const AttemptFacts& AttemptOf(JobId job) const override { return cluster_.recorded(job).attempt; }
  void Commit(const Transition& transition) override;
  // Nothing is restored from it.
  void Commit(const std::vector<std::pair<JobId, NamedPlacement>>&,
              const std::vector<JobId>&) override {}
  // Nobody looks them up by name.
  NamedPlacement Assign(const Job&, const Placement&) override { return {}; }
  const Resources* Offered(int node) const override;
  void Start(JobId job) override;
  void Stop(JobId job) override;
  void Checkpoint(JobId job) override;
  void Ended(JobId job, const Placement& placement, const EndedAttempt& how) override;
  void EndAttempt(JobId job, bool node_failed);

  // simulation_apply.cc: carries out and checks decisions.
  bool Apply(PolicyOutput output);
  void CheckCluster();
  void CheckCycle(const Decisions& decisions);
  void Violation(const std::string& what);
  void WatchDeadlocks();
  void ResolveDeadlock();

  // simulation_nodes.cc: nodes that come and go.
  void BeginNodes();
  void NodeIsReady(int node);
  void NodeIsTaken(int node);
  void FailNode(int node);
  void EndWorkersOn(int node);
  void Commit(const NodeChange& change) override;
  void Change(const NodeChange& change) override;

  SimulatedCluster cluster_;
  const VirtualClock clock_{cluster_};
  Lifecycle lifecycle_{cluster_.facts(), *this, *this, clock_};
  SimulatedPolicy& policy_;
  const SimulatorOptions options_;
  SimulationResult result_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::pair<JobId, TimeMs>> submissions_;
  size_t next_submission_ = 0;
  size_t jobs_ = 0, ended_ = 0;
  std::vector<int64_t> node_version_;
  TimeMs wake_ = kNever;  // when the policy must be called again
  TimeMs last_cycle_ = -1;
  bool changed_ = false;          // since the last cycle
  bool last_cycle_idle_ = false;  // the last cycle decided nothing
  std::vector<JobId> deadlocked_;
  bool holds_changed_ = false;
  TimeMs deadlock_deadline_ = kNever;
  std::function<TimeMs(JobId, int)> run_time_;
  std::function<TimeMs(JobId)> end_time_;
  std::function<Snapshot()> for_estimates_;
};

}  // namespace renzan::cluster::simulate
