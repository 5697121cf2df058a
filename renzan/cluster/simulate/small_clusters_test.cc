// The scheduler on small clusters, where rights show: one to six nodes, few and long jobs, of which
// often none saves its work, mixed priorities, some that nobody may stop, some that fail,
// guarantees beside queues that only borrow, some with parents. Every cycle is validated: no job
// waits for room that is its by right. And no job waits much longer than under plain backfill,
// unless jobs with a right went first.
// RENZAN_TEST_SEEDS=FIRST..LAST replaces the default seeds; a failure names its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/testing/random_snapshot.h"
#include "renzan/cluster/core/validate/packing.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/precedence.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

constexpr int64_t kGpusOfNode = 8;

// Log-uniform.
TimeMs Time(Draws& draws, TimeMs least, TimeMs most) {
  const double part = static_cast<double>(draws.Between(0, 1'000'000)) / 1e6;
  return std::llround(static_cast<double>(least) *
                      std::pow(static_cast<double>(most) / static_cast<double>(least), part));
}

Snapshot SmallCluster(Draws& draws) {
  const int nodes = static_cast<int>(draws.Between(1, 6));
  Snapshot cluster;
  cluster.pools = {{.name = "own",
                    .capacity = {.amount = {64'000, 65'536, kGpusOfNode}},
                    .min_nodes = nodes,
                    .max_nodes = nodes}};
  int64_t left = nodes * kGpusOfNode;
  const int queues = static_cast<int>(draws.Between(1, 4));
  for (int queue = 0; queue < queues; ++queue) {
    cluster.queues.push_back({.name = std::to_string(queue)});
    if (draws.Chance(0.4)) continue;
    const int64_t guaranteed = draws.Between(0, left);
    cluster.queues.back().guaranteed[kGpu] = guaranteed;
    left -= guaranteed;
  }
  return cluster;
}

Workload FewLongJobs(Draws& draws, const Snapshot& cluster) {
  const double saving = draws.Chance(0.5) ? 0 : 0.5, urgent = draws.Chance(0.5) ? 0 : 0.3;
  const TimeMs longest = Time(draws, 6 * kHour, 30 * 24 * kHour);
  const int64_t gpus = cluster.pools[0].max_nodes * kGpusOfNode;
  Workload jobs;
  TimeMs now = 0;
  for (int64_t job = draws.Between(3, 60); job > 0; --job) {
    now += Time(draws, kSecond, longest / 8);
    WorkloadJob next{
        .submitted = now,
        .queue = std::to_string(draws.Between(0, static_cast<int64_t>(cluster.queues.size()) - 1)),
        .priority = draws.Chance(urgent) ? static_cast<int>(draws.Between(1, 3)) : 0,
        .work_ms = Time(draws, kMinute, longest),
        .checkpoints = draws.Chance(saving)};
    const int64_t size = std::min(gpus, int64_t{1} << draws.Between(0, 6));
    const Gang gang = SplitIntoGang(size, kGpusOfNode);
    next.per_worker = {.amount = {1'000 * gang.gpus_per_worker, 1'024 * gang.gpus_per_worker,
                                  gang.gpus_per_worker}};
    next.min_workers = next.max_workers = gang.workers;
    if (gang.workers > 1 && draws.Chance(0.2)) next.min_workers = 1;
    jobs.push_back(next);
  }
  return jobs;
}

// Makes some jobs not preemptible, of those that their queue's guarantee can hold: they never
// borrow.
void ForbidToStop(Draws& draws, const Snapshot& cluster, Workload& jobs) {
  const double share = draws.Chance(0.5) ? 0 : 0.4;
  const bool guarantees = std::ranges::any_of(
      cluster.queues, [](const Queue& queue) { return queue.guaranteed.gpu() > 0; });
  for (WorkloadJob& job : jobs)
    job.preemptible =
        !draws.Chance(share) ||
        (guarantees && job.gpus() > cluster.queues[std::stoul(job.queue)].guaranteed.gpu());
}

// Makes some jobs fail, mostly early: they pause, avoid nodes, and lose what they have not saved.
void LetFail(Draws& draws, Workload& jobs) {
  const double share = draws.Chance(0.5) ? 0 : 0.3;
  for (WorkloadJob& job : jobs) {
    if (!draws.Chance(share)) continue;
    job.fails_after.resize(draws.Between(1, 3));
    for (TimeMs& after : job.fails_after) after = Time(draws, kSecond, 2 * job.work_ms + kSecond);
    job.retries = static_cast<int>(draws.Between(0, 3));
  }
}

// Renzan's scheduler, watched: for how long does each job wait although it would have room if only
// jobs with a right had gone first (precedence.h), and nothing were reserved for another?
class WaitsWithoutCause : public SimulatedPolicy {
 public:
  explicit WaitsWithoutCause(uint64_t seed) : scheduler_(MakePolicy("renzan", seed, {})) {}

  PolicyOutput Decide(const PolicyInput& input) override {
    const TimeMs now = input.snapshot.now;
    for (const JobId job : waiting_) stories_[job].without_cause += now - decided_;
    decided_ = now;
    waiting_.clear();
    PolicyOutput output = scheduler_->Decide(input);
    Watch(input.snapshot, output.decisions);
    return output;
  }
  PolicyOutput DecideAgain(const PolicyInput& input) override { return scheduler_->Decide(input); }
  bool IsScheduler() const override { return true; }
  bool ScalesPools() const override { return true; }

  struct Story {
    TimeMs without_cause = 0;
    TimeMs until_overdue = 0;  // from when it waits
    std::set<JobId> passed_by;
  };
  const std::map<JobId, Story>& stories() const { return stories_; }

 private:
  void Watch(const Snapshot& snapshot, const Decisions& decisions) {
    const ScheduleOptions options;
    std::optional<Precedence> precedence;
    for (const Wait& wait : decisions.waits) {
      if (wait.reason == WaitReason::kInfeasible || wait.reason == WaitReason::kBackoff) continue;
      const Job& job = *snapshot.Find(wait.job);
      Story& story = stories_[job.id];
      story.until_overdue = std::max(story.until_overdue,
                                     OverdueAt(job, options.overdue_after_ms) - job.waiting_since);
      for (const Start& start : decisions.starts) {
        if (!precedence) precedence.emplace(snapshot, decisions, options);
        if (!precedence->RightOf(*snapshot.Find(start.job), job)) story.passed_by.insert(start.job);
      }
      const bool for_room =
          wait.reason == WaitReason::kResources || wait.reason == WaitReason::kFragmented;
      if (for_room && !story.passed_by.empty() &&
          FitsWithout(story.passed_by, snapshot, decisions, job))
        waiting_.insert(job.id);
    }
  }

  static bool FitsWithout(const std::set<JobId>& others, const Snapshot& snapshot,
                          const Decisions& decisions, const Job& job) {
    std::vector<Resources> free(snapshot.nodes.size());
    for (size_t node = 0; node < free.size(); ++node) free[node] = snapshot.nodes[node].capacity;
    const auto take = [&](const Job& holder, const Placement& placement) {
      if (others.contains(holder.id)) return;
      for (const Placed& placed : placement)
        free[placed.node] -= snapshot.worker_requests[holder.request].per_worker * placed.workers;
    };
    for (const Job& each : snapshot.jobs) take(each, each.placement);
    for (const Start& start : decisions.starts) take(*snapshot.Find(start.job), start.placement);
    return check::PackTogether(snapshot, free, {{&job, job.min_workers}}) == check::Packs::kYes;
  }

  const std::unique_ptr<SimulatedPolicy> scheduler_;
  TimeMs decided_ = 0;
  std::set<JobId> waiting_;  // without cause, since then
  std::map<JobId, Story> stories_;
};

// The bound of docs/scheduling.md: the time until it is overdue, and twice as long as the longest
// of those that went first without a right took from start to end.
TimeMs Bound(const WaitsWithoutCause::Story& story, const SimulationResult& result) {
  TimeMs longest = 0;
  for (const JobId job : story.passed_by) {
    const JobRecord& passer = result.jobs[job - 1];
    longest = std::max(longest, *passer.end - *passer.first_start);
  }
  return story.until_overdue + 2 * longest;
}

TEST(SmallClusters, NoJobWaitsWithoutARightOfAnother) {
  const auto [first, last] = TestSeeds(149);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Draws draws(seed);
    Snapshot cluster = SmallCluster(draws);
    Workload jobs = FewLongJobs(draws, cluster);
    if (Draws tree(~seed); tree.Chance(0.3)) AddParents(tree, cluster);
    ForbidToStop(draws, cluster, jobs);
    LetFail(draws, jobs);
    WaitsWithoutCause renzan(seed);
    const SimulationResult result = Simulate(cluster, jobs, renzan, {.check = true});
    ASSERT_TRUE(result.never_ended.empty()) << "seed " << seed;
    ASSERT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    const SimulationResult backfill = Simulate(cluster, jobs, *MakePolicy("backfill", seed));
    ASSERT_EQ(result.jobs.size(), jobs.size()) << "seed " << seed;
    for (const auto& [job, story] : renzan.stories()) {
      const TimeMs longer = result.jobs[job - 1].waited_ms - backfill.jobs[job - 1].waited_ms;
      EXPECT_LE(std::min(longer, story.without_cause), Bound(story, result))
          << "seed " << seed << ", job " << job;
    }
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
