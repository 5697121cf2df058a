// Two users of a queue: one floods it with short jobs, the other submits a few later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

using testing::IsEmpty;

constexpr int kFlood = 1000, kLater = 10;

Snapshot ANodeOfEight() {
  Snapshot cluster;
  cluster.pools = {
      {.name = "own", .capacity = {.amount = {64'000, 65'536, 8}}, .min_nodes = 1, .max_nodes = 1}};
  cluster.queues = {{.name = "default"}};
  cluster.nodes = {{.name = "own-0", .pool = 0, .capacity = cluster.pools[0].capacity}};
  return cluster;
}

WorkloadJob JobOf(const char* user, TimeMs submitted, TimeMs work) {
  WorkloadJob job{.submitted = submitted, .user = user, .work_ms = work, .checkpoints = true};
  job.per_worker = {.amount = {1'000, 1'024, 1}};
  return job;
}

// Ann's thousand jobs of six minutes keep 8 GPUs busy for 12 hours and a half; bob's ten come after
// an hour.
Workload Flood() {
  Workload jobs(kFlood, JobOf("ann", 0, 6 * kMinute));
  jobs.insert(jobs.end(), kLater, JobOf("bob", kHour, 6 * kMinute));
  return jobs;
}

SimulationResult Simulated(const Snapshot& cluster, const Workload& jobs, bool check) {
  const auto policy = MakeScheduler([](const Snapshot& snapshot) { return Schedule(snapshot); });
  return Simulate(cluster, jobs, *policy, {.check = check});
}

TimeMs LongestWait(const SimulationResult& result, size_t begin, size_t end) {
  TimeMs longest = 0;
  for (size_t at = begin; at < end; ++at)
    longest = std::max(longest, result.jobs[at].first_start.value() - result.jobs[at].submitted);
  return longest;
}

TEST(FairShare, WhoeverSubmitsLittleWaitsLittleForAFlood) {
  Snapshot cluster = ANodeOfEight();
  const SimulationResult without = Simulated(cluster, Flood(), /*check=*/false);
  EXPECT_GT(LongestWait(without, kFlood, kFlood + kLater), 11 * kHour);

  cluster.queues[0].fair_share = {.half_life = 7 * 24 * kHour};
  const SimulationResult with = Simulated(cluster, Flood(), /*check=*/false);
  ASSERT_THAT(with.never_ended, IsEmpty());
  // Eight start once as many of ann's have ended, the others when those have.
  EXPECT_LE(LongestWait(with, kFlood, kFlood + kLater), 12 * kMinute);
  EXPECT_EQ(std::count_if(with.jobs.begin(), with.jobs.end(),
                          [](const JobRecord& job) { return job.preemptions > 0; }),
            0);
  // Nobody else gets less: the last job ends when it did.
  EXPECT_EQ(with.totals.end, without.totals.end);
}

// Both want everything all the time: each gets half, within the factor of two of a level.
TEST(FairShare, UsersWhoWantEverythingShareIt) {
  Snapshot cluster = ANodeOfEight();
  cluster.queues[0].fair_share = {.half_life = 24 * kHour};
  Workload jobs(400, JobOf("ann", 0, 30 * kMinute));
  jobs.insert(jobs.end(), 400, JobOf("bob", kMinute, 30 * kMinute));
  const SimulationResult result = Simulated(cluster, jobs, /*check=*/false);
  TimeMs of_ann = 0, of_bob = 0;
  for (const Interval& run : result.runs)
    (run.job <= 400 ? of_ann : of_bob) +=
        std::min(run.end, 20 * kHour) - std::min(run.begin, 20 * kHour);
  EXPECT_GT(of_bob, of_ann * 2 / 5);
  EXPECT_GT(of_ann, of_bob);  // her jobs were submitted first
}

// By every invariant of the scheduler, and with the same end whatever was decided before.
TEST(FairShare, DecisionsAreValid) {
  Snapshot cluster = ANodeOfEight();
  cluster.queues[0].fair_share = {.half_life = kHour};
  Workload jobs;
  for (int at = 0; at < 120; ++at)
    jobs.push_back(JobOf(at % 7 == 0   ? "bob"
                         : at % 5 == 0 ? "eve"
                                       : "ann",
                         at * kMinute, (1 + at % 9) * 20 * kMinute));
  const SimulationResult result = Simulated(cluster, jobs, /*check=*/true);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_THAT(result.never_ended, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::simulate
