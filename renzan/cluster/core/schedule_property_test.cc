// The scheduler's invariants in random environments. RENZAN_TEST_SEEDS=FIRST..LAST (or one seed)
// replaces the default seeds; a failure names its seed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/testing/random_environment.h"
#include "renzan/cluster/core/testing/random_snapshot.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Levels that jobs reach in much less than the three days within which changes must cease.
Decisions Policy(const Snapshot& snapshot) {
  return Schedule(snapshot, {.levels = {.thresholds_ms = {kHour, 4 * kHour}}});
}

// Levels that jobs of minutes reach.
Decisions QuickPolicy(const Snapshot& snapshot) {
  return Schedule(snapshot, {.levels = {.thresholds_ms = {10 * kMinute, 30 * kMinute, 2 * kHour},
                                        .max_overhead_share = 0.1}});
}

Decisions QuickGittins(const Snapshot& snapshot) {
  return Schedule(snapshot, {.levels = {.thresholds_ms = {10 * kMinute, 30 * kMinute, 2 * kHour},
                                        .gittins = true,
                                        .max_overhead_share = 0.1}});
}

TEST(ScheduleProperty, OneCycleOnAnySnapshot) {
  const auto [first, last] = TestSeeds(1999);
  for (uint64_t seed = first; seed <= last; ++seed) {
    const Snapshot snapshot = RandomSnapshot(seed);
    ASSERT_EQ(Join(ValidateSnapshot(snapshot)), "") << "seed " << seed;
    const Decisions decisions = Schedule(snapshot);
    EXPECT_EQ(Join(ValidateDecisions(snapshot, decisions)), "") << "seed " << seed;
    EXPECT_EQ(Describe(decisions), Describe(Schedule(snapshot))) << "seed " << seed;
    for (const Start& start : decisions.starts)
      EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(start.job)), "")
          << "seed " << seed << ", job " << start.job;
    for (const Wait& wait : decisions.waits)
      EXPECT_EQ(wait.reason == WaitReason::kInfeasible &&
                    WhyInfeasible(snapshot, *snapshot.Find(wait.job)).empty(),
                false)
          << "seed " << seed << ", job " << wait.job;
  }
}

TEST(ScheduleProperty, WhatIsPredictedNowChangesNoDecision) {
  const auto [first, last] = TestSeeds(999);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Snapshot snapshot = RandomSnapshot(seed);
    const Decisions decisions = Policy(snapshot);
    for (Job& job : snapshot.jobs) job.run_time_now = {1, kMinute, kHour, 2 * kHour, 90 * kHour};
    EXPECT_EQ(Describe(Policy(snapshot)), Describe(decisions)) << "seed " << seed;
  }
}

// Whether the start can be carried out regardless of the other decisions.
bool IsIndependent(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                   const Start& start) {
  const Job& job = *snapshot.Find(start.job);
  const Queue& queue = snapshot.queues[job.queue];
  return job.preemptible && queue.limit == Queue::Unlimited() &&
         snapshot.users[job.user].CapAt(snapshot.now) == kUnlimited &&
         std::none_of(faults.begin(), faults.end(), [&](const SnapshotFault& fault) {
           const Job* faulty = snapshot.Find(fault.job);
           return faulty == &job || IsOn(start.placement, fault.node) ||
                  (faulty != nullptr && faulty->state == JobState::kPending &&
                   Overlap(start.placement, faulty->placement)) ||
                  (faulty != nullptr && Overlap(start.placement, faulty->target));
         });
}

TEST(ScheduleProperty, AFaultNeverWithholdsEverything) {
  const auto [first, last] = TestSeeds(1999);
  int faulty = 0, partial = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    Snapshot snapshot = RandomSnapshot(seed);
    Draws draws(seed + 1'000'000);
    if (!InjectFault(draws, snapshot)) continue;
    const std::vector<SnapshotFault> faults = FindFaults(snapshot);
    EXPECT_FALSE(faults.empty()) << "seed " << seed;
    const Decisions decisions = Schedule(snapshot);
    const Validated validated = Validate(snapshot, decisions);
    EXPECT_EQ(Join(validated.violations), "") << "seed " << seed;
    std::set<JobId> kept;
    for (const Start& start : validated.decisions.starts) kept.insert(start.job);
    for (const Start& start : decisions.starts)
      EXPECT_TRUE(kept.contains(start.job) || !IsIndependent(snapshot, faults, start))
          << "seed " << seed << ", job " << start.job;
    ++faulty;
    partial += kept.size() < decisions.starts.size() && !kept.empty();
  }
  if (last - first > 1000) {
    EXPECT_GT(faulty, 1000);
    EXPECT_GT(partial, 20);
  }
}

TEST(ScheduleProperty, ManyCyclesInARandomEnvironment) {
  const auto [first, last] = TestSeeds(23);
  for (uint64_t seed = first; seed <= last; ++seed) {
    constexpr std::array kPolicies = {Policy, QuickPolicy, QuickGittins};
    RandomEnvironment environment(seed, kPolicies[seed % kPolicies.size()]);
    for (int round = 0; round < 2; ++round) {
      for (int step = 0; step < 30; ++step) environment.Disturb();
      environment.Settle();
    }
    for (int step = 0; step < 10; ++step) environment.Disturb();
    environment.Finish();
    EXPECT_EQ(Join(environment.violations()), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace renzan::cluster
