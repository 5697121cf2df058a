#pragma once

// What happened to one job of a simulation: why it waited, which jobs went first meanwhile and why,
// and for whom it was stopped. Watches another policy. Not thread-safe.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

class JobStory : public SimulatedPolicy {
 public:
  // `options` are those of the policy, if it is Renzan's.
  JobStory(std::unique_ptr<SimulatedPolicy> policy, JobId job, const ScheduleOptions& options)
      : policy_(std::move(policy)), job_(job), options_(options) {}

  PolicyOutput Decide(const PolicyInput& input) override;
  bool IsScheduler() const override { return policy_->IsScheduler(); }
  bool ScalesPools() const override { return policy_->ScalesPools(); }

  // Lines of text. Error kUsage if the simulation had no such job.
  std::string Text(const SimulationResult& result) const;

 private:
  // A time during which it waited for one reason.
  struct Waiting {
    TimeMs begin = 0;
    std::string reason;
    std::map<std::string, int> went_first;           // by why, the number of jobs
    std::vector<std::pair<int64_t, JobId>> largest;  // of them: GPUs, job; at most three
  };

  void Watch(const Snapshot& snapshot, const Decisions& decisions);
  void WatchPending(const Snapshot& snapshot, const Job& job, const Decisions& decisions);
  void CountFirst(const Snapshot& snapshot, const Job& job, const Start& start);
  void CloseWaiting(TimeMs now);
  void Tell(TimeMs time, std::string what) { lines_.emplace_back(time, std::move(what)); }

  const std::unique_ptr<SimulatedPolicy> policy_;
  const JobId job_;
  const ScheduleOptions options_;
  std::vector<std::pair<TimeMs, std::string>> lines_;
  std::optional<Waiting> waiting_;
};

}  // namespace renzan::cluster::simulate
