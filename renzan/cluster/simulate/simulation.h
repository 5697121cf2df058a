#pragma once

// The state of one simulation; simulator.h is the interface. Not thread-safe.

#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

class Simulation : private Environment {
 public:
  Simulation(Snapshot cluster, SimulatedPolicy& policy, const SimulatorOptions& options);

  void Plan(const Workload& workload);
  void Adopt(const std::vector<int64_t>& work_left);
  SimulationResult Run();

 private:
  enum class What {  // events at the same time are handled in this order
    kJobEnds,
    kStopEnds,
    kResizeEnds,
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
  void EndAttempt(JobId job);
  void SubmitNext();
  void Cycle();
  bool NothingCanChange() const;
  void Expect(TimeMs time, What what, int64_t subject, int64_t version);
  void ExpectOfJob(TimeMs time, What what, JobId job);

  // simulation_apply.cc: carries out and checks decisions.
  bool Apply(const PolicyOutput& output);
  void Perform(const Start& start) override;
  void Perform(const Stop& stop) override;
  void Perform(const Resize& resize) override;
  void Perform(const CheckpointRequest& request) override;
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
  void Commit(const NodeChange& change) override;
  void Perform(const NodeChange& change) override;

  SimulatedCluster cluster_;
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
};

}  // namespace renzan::cluster::simulate
