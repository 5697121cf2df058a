#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class PreemptionTest : public ScheduleTest {};

TEST_F(PreemptionTest, PreemptsOnlyTheCheapestJobOfLowerPriority) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});  // would lose an hour of 8 GPUs
  const JobId cheap = Add({.gpus = 8, .on = {{1, 1}}});
  const JobId urgent = Add({.priority = 5, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(cheap));
  EXPECT_EQ(decisions.stops[0].on_behalf_of, urgent);
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kPreempted);
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kPipelined);
}

TEST_F(PreemptionTest, DoesNotPreemptIfThePreemptorWouldNotFit) {
  Nodes(2);
  Add({.priority = 9, .gpus = 1, .on = {{0, 1}}});
  Add({.priority = 9, .gpus = 1, .on = {{1, 1}}});
  Add({.gpus = 7, .on = {{0, 1}}});
  const JobId large = Add({.priority = 5, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, large), WaitReason::kResources);
}

// Its minimum is within quota whatever it has grown to. Otherwise it would be stopped as a whole,
// reclaim its minimum, grow again, and so on.
TEST_F(PreemptionTest, AnElasticJobThatHasGrownYieldsWhatItBorrowsAndNoMore) {
  Nodes(1);
  TwoQueues(2, 0);
  const JobId grown = Add({.workers = 2, .max_workers = 4, .on = {{0, 4}}});
  Add({.priority = 9, .workers = 4, .on = {{0, 4}}});  // borrows
  const JobId urgent = Add({.queue = 1, .priority = 5, .workers = 4});
  Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kResources);
  snapshot.jobs.back().min_workers = 2;
  decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, grown);
  EXPECT_EQ(NumWorkers(decisions.resizes[0].target), 2);
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kPipelined);
}

// What it took beyond its queue's guaranteed quota could be regained only by stopping it.
TEST_F(PreemptionTest, AJobThatCannotBeShrunkStartsWithinQuotaIfItCan) {
  Nodes(1);
  TwoQueues(3, 5);
  const JobId first = Add({.workers = 1, .max_workers = 4, .checkpoints = false});
  const JobId second = Add({.workers = 1, .max_workers = 4, .checkpoints = false});
  Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), UnorderedElementsAre(first, second));
  EXPECT_EQ(NumWorkers(decisions.starts[0].placement) + NumWorkers(decisions.starts[1].placement),
            3);
  // With nothing guaranteed, everything that it takes is borrowed.
  TwoQueues(0, 8);
  decisions = Run();
  EXPECT_EQ(NumWorkers(decisions.starts[0].placement) + NumWorkers(decisions.starts[1].placement),
            8);
}

TEST_F(PreemptionTest, DoesNotPreemptEqualPriority) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}});
  Add({.gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(PreemptionTest, APreemptorGetsTheResourcesReleasedForIt) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}});
  const JobId urgent = Add({.priority = 5, .gpus = 4});
  const JobId newer = Add({.priority = 9, .gpus = 8});
  snapshot.jobs[0].state = JobState::kStopping;
  snapshot.jobs[0].stopping_for = urgent;
  const Decisions decisions = Run();
  EXPECT_EQ(decisions.waits[0].job, urgent);
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kPipelined);
  EXPECT_NE(ReasonOf(decisions, newer), WaitReason::kPipelined);
}

TEST_F(PreemptionTest, ShrinksElasticJobsBeforeStoppingAny) {
  Nodes(2);
  const JobId elastic = Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}});
  const JobId urgent = Add({.priority = 1, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, elastic);
  EXPECT_EQ(NumWorkers(decisions.resizes[0].target), 1);
  EXPECT_EQ(decisions.resizes[0].on_behalf_of, urgent);
}

TEST_F(PreemptionTest, WorkersAboveTheMinimumYieldToEqualPriority) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}});
  Add({.gpus = 8});
  EXPECT_EQ(Run().resizes.size(), 1u);
  // Not before it has run ten times as long as it takes to restart,
  Job& elastic = snapshot.jobs[0];
  elastic.started = kNow - 9 * kMinute;
  elastic.restart_cost_ms = kMinute;
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.resizes, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow + kMinute + 10 * elastic.checkpoint_cost_ms);
  // unless for higher priority, or a guarantee.
  snapshot.jobs[1].priority = 1;
  EXPECT_EQ(Run().resizes.size(), 1u);
  snapshot.jobs[1].priority = 0;
  snapshot.jobs[1].queue = 1;
  TwoQueues(8, 8);
  EXPECT_EQ(Run().resizes.size(), 1u);
}

TEST_F(PreemptionTest, AJobThatCannotCheckpointWithinItsGraceCostsMore) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}});
  const JobId quick = Add({.gpus = 8, .on = {{1, 1}}});
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms + 1;
  snapshot.jobs[1].checkpoint_cost_ms = snapshot.jobs[1].grace_ms;
  Add({.priority = 1, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(quick));
  // Unless it has just checkpointed on its own.
  snapshot.jobs[0].last_checkpoint = snapshot.now;
  EXPECT_THAT(Stopped(Run()), ElementsAre(1));
}

TEST_F(PreemptionTest, AGangOnOneHostPreemptsOnOneNode) {
  Nodes(2);
  Add({.gpus = 6, .on = {{0, 1}}});
  Add({.gpus = 6, .on = {{1, 1}}, .ran_ms = 10});
  WorkerRequest on_a_host{.topology_level = "host", .topology_required = true};
  Add({.priority = 1, .workers = 2, .gpus = 2, .request = on_a_host});
  EXPECT_EQ(Stopped(Run()).size(), 1u);
}

TEST_F(PreemptionTest, LendsIdleQuotaAndReclaimsItAtAnyPriority) {
  TwoQueues(8, 8);
  Nodes(2);
  const JobId own = Add({.queue = 1, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  const JobId borrowed =
      Add({.queue = 1, .priority = 9, .gpus = 8, .on = {{1, 1}}, .ran_ms = 60'000});
  Add({.queue = 0, .gpus = 8});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.stops.size(), 1u);
  EXPECT_THAT(Stopped(decisions), testing::AnyOf(ElementsAre(own), ElementsAre(borrowed)));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);
}

TEST_F(PreemptionTest, QuotaGoesToWhoCanUseIt) {
  TwoQueues(16, 8);
  snapshot.queues.push_back({.name = "c"});
  Nodes(3);
  std::vector<JobId> borrowers;
  for (int node = 0; node < 3; ++node) {
    Add({.queue = 1, .checkpoints = false, .on = {{node, 1}}});  // within its quota
    borrowers.push_back(Add({.queue = 2, .gpus = 7, .checkpoints = false, .on = {{node, 1}}}));
  }
  const JobId gang = Add({.queue = 0, .workers = 2, .gpus = 8, .checkpoints = false});
  const JobId small = Add({.queue = 0, .checkpoints = false});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, gang), WaitReason::kResources);
  EXPECT_EQ(ReasonOf(decisions, small), WaitReason::kPipelined);
  ASSERT_EQ(decisions.stops.size(), 1u);
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);
  // Where the gang could have room, the quota is its own.
  snapshot.jobs[0].queue = snapshot.jobs[2].queue = 2;
  const Decisions then = Run();
  EXPECT_EQ(ReasonOf(then, gang), WaitReason::kPipelined);
  EXPECT_NE(ReasonOf(then, small), WaitReason::kPipelined);
}

TEST_F(PreemptionTest, PriorityDoesNotPreemptGuaranteedQuotaOfOtherQueues) {
  TwoQueues(8, 8);
  Nodes(2);
  Add({.queue = 0, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = 1, .gpus = 8, .on = {{1, 1}}});
  Add({.queue = 0, .priority = 100, .gpus = 8});  // preempts a job of its own queue
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(1));
}

TEST_F(PreemptionTest, ALimitOfOneQueueTakesNoGuaranteeFromOthers) {
  Nodes(1, 4);
  TwoQueues(4, 0);
  snapshot.queues[1].limit[kCpu] = 6'000;
  const JobId within = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId urgent = Add({.queue = 1, .priority = 10, .gpus = 4});
  Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kResources);

  // The other way round, it reclaims.
  std::swap(snapshot.Find(within)->state, snapshot.Find(urgent)->state);
  std::swap(snapshot.Find(within)->placement, snapshot.Find(urgent)->placement);
  decisions = Run();
  ASSERT_THAT(Stopped(decisions), ElementsAre(urgent));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);

  // A queue with only a limit is guaranteed nothing: it borrows.
  snapshot.queues[1].limit[kGpu] = 6;
  decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(urgent));
}

TEST_F(PreemptionTest, JobsThatAreNotPreemptibleAreWithinQuotaFirst) {
  Nodes(2);
  TwoQueues(8, 8);
  const JobId movable = Add({.priority = 1, .gpus = 8, .on = {{0, 1}}});
  Add({.gpus = 8, .on = {{1, 1}}, .preemptible = false});
  Add({.queue = 1, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(movable));
}

TEST_F(PreemptionTest, AUserCapHoldsBeforeAndAfterAQuotaOverride) {
  snapshot.users[0].max_gpus = 4;
  Nodes(1);
  const JobId running = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId more = Add({.gpus = 2});
  EXPECT_EQ(ReasonOf(Run(), more), WaitReason::kUserCap);
  snapshot.users[0].quota_overrides = {{.max_gpus = 8, .until = kNow + 1000}};
  const Decisions overridden = Run();
  EXPECT_THAT(Started(overridden), ElementsAre(more));
  EXPECT_EQ(overridden.look_again, kNow + 1000);
  snapshot.users[0].max_gpus = 2;
  snapshot.users[0].quota_overrides = {{.max_gpus = 8, .until = kNow}};
  EXPECT_THAT(Stopped(Run()), ElementsAre(running));
}

TEST_F(PreemptionTest, TheGrandChallengeStopsAllJobs) {
  TwoQueues(8, 8);
  Nodes(2);
  Add({.queue = 0, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = 1, .gpus = 8, .on = {{1, 1}}});
  const JobId all = Add({.workers = 2, .gpus = 8});
  snapshot.jobs.back().quota_exempt = true;
  snapshot.jobs.back().preemptible = false;
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), UnorderedElementsAre(1, 2));
  EXPECT_EQ(ReasonOf(decisions, all), WaitReason::kPipelined);
}

TEST_F(PreemptionTest, TheGrandChallengeTakesAllThatItCanUse) {
  Nodes(1);
  Add({.priority = 1, .workers = 1, .max_workers = 8});
  for (int job = 0; job < 4; ++job) Add({});
  const JobId all = Add({.workers = 4, .max_workers = 8});
  snapshot.jobs.back().quota_exempt = true;
  snapshot.jobs.back().preemptible = false;
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(all));
  EXPECT_EQ(NumWorkers(decisions.starts[0].placement), 8);
}

// Otherwise it would restart before the others may have its workers, and be protected again.
TEST_F(PreemptionTest, AnElasticJobDoesNotGrowBeforeEqualsMayTakeItsWorkers) {
  Nodes(1, 4);
  const JobId elastic =
      Add({.workers = 1, .max_workers = 8, .on = {{0, 3}}, .ran_ms = 14 * kMinute});
  snapshot.Find(elastic)->restart_cost_ms = 90 * kSecond;
  snapshot.Find(elastic)->checkpoint_cost_ms = 0;
  Add({.gpus = 4});
  Decisions decisions = Run();
  EXPECT_THAT(decisions.resizes, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow + kMinute);
  snapshot.jobs.pop_back();  // nobody waits
  EXPECT_THAT(Run().resizes, SizeIs(1));
}

}  // namespace
}  // namespace renzan::cluster
