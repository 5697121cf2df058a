// However much is submitted, every job starts: once it is overdue it goes first, and a gang that
// would need several jobs to end gets nodes reserved. Simulations with more work than the cluster
// can do, in which new jobs with less service keep coming.

#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/philox.h"
#include "renzan/base/random_testing.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

constexpr int64_t kGpus = 8;
constexpr TimeMs kOverdueAfter = 2 * kHour, kLongestRun = 3 * kHour;

Snapshot NodesOfEight(int nodes) {
  Snapshot cluster;
  cluster.pools = {{.name = "own",
                    .capacity = {.amount = {64'000, 65'536, kGpus}},
                    .min_nodes = nodes,
                    .max_nodes = nodes}};
  cluster.queues = {{.name = "default"}};
  return cluster;
}

WorkloadJob JobOf(TimeMs submitted, int64_t gpus, TimeMs work, bool checkpoints) {
  WorkloadJob job{.submitted = submitted, .work_ms = work, .checkpoints = checkpoints};
  job.per_worker = {.amount = {1'000 * gpus, 1'024 * gpus, gpus}};
  return job;
}

// Jobs of one kind for two days, half as much again as `nodes` can do.
Workload Overload(uint64_t seed, int nodes, int64_t gpus, bool checkpoints) {
  Workload jobs;
  uint64_t draws = 0;
  const auto draw = [&](uint32_t below) { return Philox::Draw(seed, draws++, 0)[0] % below; };
  const int64_t slots = nodes * kGpus / gpus;
  const TimeMs between = kLongestRun / 2 / slots * 2 / 3;
  for (TimeMs now = 0; now < 48 * kHour; now += 1 + draw(static_cast<uint32_t>(2 * between)))
    jobs.push_back(JobOf(now, gpus, kMinute + draw(kLongestRun - kMinute), checkpoints));
  return jobs;
}

Decisions DecideEarly(const Snapshot& snapshot) {
  ScheduleOptions options;
  options.overdue_after_ms = kOverdueAfter;
  options.max_reserved_share = 0.5;
  options.levels.thresholds_ms = {kHour / 4, kHour};
  return Schedule(snapshot, options);
}

// The job that has been overdue for longest; null if none is.
const Job* LongestOverdue(const Snapshot& snapshot) {
  const Job* longest = nullptr;
  for (const Job& job : snapshot.jobs)
    if (job.state == JobState::kPending && job.eligible_at <= snapshot.now &&
        snapshot.now >= OverdueAt(job, kOverdueAfter) &&
        (longest == nullptr || job.waiting_since < longest->waiting_since))
      longest = &job;
  return longest;
}

// Whether it starts, or gets what is being released.
bool IsServed(const Decisions& decisions, JobId job) {
  return std::any_of(decisions.starts.begin(), decisions.starts.end(),
                     [&](const Start& start) { return start.job == job; }) ||
         std::any_of(decisions.waits.begin(), decisions.waits.end(), [&](const Wait& wait) {
           return wait.job == job && wait.reason == WaitReason::kPipelined;
         });
}

TEST(Starvation, NobodyStartsBeforeTheLongestOverdueJob) {
  const auto [first, last] = TestSeeds(7);
  int overdue_starts = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const auto policy = MakeScheduler([&](const Snapshot& snapshot) {
      Decisions decisions = DecideEarly(snapshot);
      const Job* longest = LongestOverdue(snapshot);
      if (longest == nullptr || decisions.starts.empty()) return decisions;
      EXPECT_TRUE(IsServed(decisions, longest->id))
          << "seed " << seed << ": job " << longest->id << " at " << snapshot.now;
      ++overdue_starts;
      return decisions;
    });
    const Workload jobs = Overload(seed, 3, kGpus, /*checkpoints=*/seed % 2 == 0);
    EXPECT_TRUE(Simulate(NodesOfEight(3), jobs, *policy, {}).never_ended.empty());
    if (HasFailure()) return;
  }
  EXPECT_GT(overdue_starts, 100);
}

// Small jobs that nobody may stop take every GPU that becomes free, until nodes are reserved: at
// the latest when the gang, for which half of the cluster may be reserved, has waited for as long
// as any job still runs. Then only those that run there already are waited for, and those that were
// expected to end before them.
TEST(Starvation, AGangStartsWithinTheBoundOfItsReservation) {
  const auto [first, last] = TestSeeds(7);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Workload jobs = Overload(seed, 4, 1, /*checkpoints=*/false);
    const TimeMs submitted = 12 * kHour;
    WorkloadJob gang = JobOf(submitted, kGpus, kHour, /*checkpoints=*/true);
    gang.min_workers = gang.max_workers = 2;
    const auto at = std::find_if(jobs.begin(), jobs.end(),
                                 [&](const WorkloadJob& job) { return job.submitted > submitted; });
    const auto place = static_cast<size_t>(at - jobs.begin());
    jobs.insert(at, gang);
    const SimulationResult result =
        Simulate(NodesOfEight(4), jobs, *MakeScheduler(DecideEarly), {});
    ASSERT_TRUE(result.never_ended.empty());
    const JobRecord& record = result.jobs[place];
    ASSERT_EQ(record.gpus, 2 * kGpus);
    EXPECT_LE(*record.first_start - submitted, kLongestRun + kLongestRun + kMinute)
        << "seed " << seed;
    EXPECT_GT(*record.first_start - submitted, kOverdueAfter) << "seed " << seed;  // it was needed
  }
}

// Nobody may stop the small jobs, so the gang's higher priority gives it nothing until it claims
// its room. From then on only jobs that will be done in time start there.
TEST(Starvation, JobsOfLowerPriorityThatNobodyMayStopDoNotPassAGang) {
  const auto [first, last] = TestSeeds(7);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Workload jobs = Overload(seed, 2, 2, /*checkpoints=*/false);
    for (WorkloadJob& job : jobs) job.preemptible = false;
    const TimeMs submitted = 12 * kHour;
    WorkloadJob gang = JobOf(submitted, kGpus, kHour, /*checkpoints=*/seed % 2 == 0);
    gang.min_workers = gang.max_workers = 2;
    gang.priority = 100;
    const auto at = std::find_if(jobs.begin(), jobs.end(),
                                 [&](const WorkloadJob& job) { return job.submitted > submitted; });
    const auto place = static_cast<size_t>(at - jobs.begin());
    jobs.insert(at, gang);
    const SimulationResult result =
        Simulate(NodesOfEight(2), jobs, *MakePolicy("renzan", seed), {.check = true});
    ASSERT_TRUE(result.never_ended.empty());
    ASSERT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    const JobRecord& record = result.jobs[place];
    ASSERT_EQ(record.gpus, 2 * kGpus);
    EXPECT_LE(*record.first_start - submitted, kLongestRun) << "seed " << seed;
    EXPECT_GT(*record.first_start - submitted, kMinute) << "seed " << seed;
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
