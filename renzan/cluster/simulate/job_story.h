#pragma once

// What happened to one job of a simulation: why it waited, which jobs went first meanwhile and why,
// and for whom it was stopped. Watches another policy. Not thread-safe.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {

class JobStory : public SimulatedPolicy {
 public:
  // `options` are those of the policy, if it is Renzan's. For another policy, the story does not
  // say by which rule other jobs went first.
  JobStory(std::unique_ptr<SimulatedPolicy> policy, JobId job, const ScheduleOptions& options)
      : policy_(std::move(policy)), job_(job), options_(options) {}

  PolicyOutput Decide(const PolicyInput& input) override;
  PolicyOutput DecideAgain(const PolicyInput& input) override {
    return policy_->DecideAgain(input);
  }
  bool IsScheduler() const override { return policy_->IsScheduler(); }
  bool ScalesPools() const override { return policy_->ScalesPools(); }

  // Lines of text, once the simulation has ended. Error kUsage if it had no such job.
  std::string Text(const SimulationResult& result);

 private:
  // A time during which it waited for one reason.
  struct Waiting {
    TimeMs begin = 0;
    std::string reason;
    std::string expected;  // how long, at its beginning; empty: unknown
    std::map<std::string, std::set<JobId>> went_first;  // by the reason why
    std::map<JobId, int64_t> gpus;                      // of those jobs
  };

  void Watch(const PolicyInput& input, const PolicyOutput& output);
  void WatchPending(const PolicyInput& input, const Job& job, const PolicyOutput& output);
  void WatchRunning(const Snapshot& snapshot, const Job& job, const PolicyOutput& output);
  void WentFirst(const Snapshot& snapshot, const Job& job, const Decisions& decisions);
  void CloseWaiting(TimeMs now);
  void Tell(TimeMs time, std::string what) { lines_.emplace_back(time, std::move(what)); }

  const std::unique_ptr<SimulatedPolicy> policy_;
  const JobId job_;
  const ScheduleOptions options_;
  std::vector<std::pair<TimeMs, std::string>> lines_;
  std::optional<Waiting> waiting_;
  bool runs_ = false;    // when last seen
  bool leaves_ = false;  // was told to stop or to move, when last seen
};

}  // namespace renzan::cluster::simulate
