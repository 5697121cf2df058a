#include "renzan/cluster/core/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(ScheduleTest, AGangStartsWholeOrNotAtAll) {
  Nodes(2);
  const JobId fits = Add({.workers = 2, .gpus = 8});
  const JobId waits = Add({.workers = 2, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
  EXPECT_EQ(ReasonOf(decisions, waits), WaitReason::kResources);
}

TEST_F(ScheduleTest, FragmentedMeansThatEnoughOfEveryKindIsFree) {
  Nodes(2);
  for (Node& node : snapshot.nodes) node.capacity[kCpu] = 2000;
  for (int node = 0; node < 2; ++node) Add({.gpus = 5, .checkpoints = false, .on = {{node, 1}}});
  const JobId fragmented = Add({.gpus = 6});
  const JobId too_few_cpus = Add({.workers = 3, .gpus = 1});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, fragmented), WaitReason::kFragmented);
  EXPECT_EQ(ReasonOf(decisions, too_few_cpus), WaitReason::kResources);
}

TEST_F(ScheduleTest, SmallJobsFillPartlyUsedNodes) {
  Nodes(3);
  Add({.gpus = 5, .on = {{1, 1}}});
  const JobId small = Add({.gpus = 2});
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(small));
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{1, 1}));
}

TEST_F(ScheduleTest, AGangUsesFewNodesAndKeepsEmptyOnesEmpty) {
  Nodes(3);
  Add({.gpus = 4, .on = {{0, 1}}});
  Add({.workers = 6, .gpus = 2});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 1u);
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{0, 2}, Placed{1, 4}));
}

TEST_F(ScheduleTest, RequiredTopologyKeepsAGangInOneDomain) {
  snapshot.topology_levels = {"rack"};
  Nodes(4);
  for (int node = 0; node < 4; ++node)
    snapshot.nodes[node].labels = {{"rack", node < 2 ? "r0" : "r1"}};
  Add({.gpus = 1, .on = {{0, 1}}});
  WorkerRequest in_a_rack{.topology_level = "rack", .topology_required = true};
  Add({.workers = 2, .gpus = 8, .request = in_a_rack});
  const JobId waits = Add({.workers = 2, .gpus = 7, .request = in_a_rack});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{2, 1}, Placed{3, 1}));
  EXPECT_EQ(decisions.starts[1].job, waits);
}

TEST_F(ScheduleTest, LabelsAreRequiredOrPreferred) {
  Nodes(3);
  snapshot.nodes[1].labels = {{"gpu_model", "a100"}};
  snapshot.nodes[2].labels = {{"gpu_model", "a100"}, {"fast", "yes"}};
  Add({.request = {.required = {{"gpu_model", "a100"}}}});
  Add({.request = {.preferred = {{"fast", "yes"}}}});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_EQ(decisions.starts[0].placement[0].node, 1);
  EXPECT_EQ(decisions.starts[1].placement[0].node, 2);
}

TEST_F(ScheduleTest, JobsWithoutCheckpointsAvoidSpotNodes) {
  Nodes(2);
  snapshot.nodes[0].spot = true;
  Add({.gpus = 4, .checkpoints = false});
  Add({.gpus = 4, .checkpoints = true});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_EQ(decisions.starts[0].placement[0].node, 1);
  EXPECT_EQ(decisions.starts[1].placement[0].node, 0);
}

TEST_F(ScheduleTest, ElasticJobsGrowIntoFreeResources) {
  Nodes(3);
  const JobId grows = Add({.workers = 1, .max_workers = 4, .gpus = 8, .on = {{0, 1}}});
  const JobId starts = Add({.workers = 1, .max_workers = 2, .gpus = 4});
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(starts));
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, grows);
  EXPECT_EQ(NumWorkers(decisions.resizes[0].target), 2);
  EXPECT_EQ(NumWorkers(decisions.starts[0].placement), 2);
}

TEST_F(ScheduleTest, GrowsNoMoreOftenThanAllowed) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}}, .ran_ms = 60'000});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.resizes, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow - 60'000 + ScheduleOptions{}.min_between_resizes_ms);
}

TEST_F(ScheduleTest, EnforcesTheQueueLimit) {
  TwoQueues(8, 8);
  snapshot.queues[0].limit[kGpu] = 12;
  Nodes(4);
  Add({.queue = 0, .gpus = 8, .on = {{0, 1}}});
  const JobId fits = Add({.queue = 0, .gpus = 4});
  const JobId waits = Add({.queue = 0, .gpus = 1});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
  EXPECT_EQ(ReasonOf(decisions, waits), WaitReason::kQueueLimit);
}

TEST_F(ScheduleTest, AJobThatCanNeverFitIsInfeasible) {
  Nodes(2);
  const JobId never = Add({.gpus = 9});
  const JobId fits = Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, never), WaitReason::kInfeasible);
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
}

TEST_F(ScheduleTest, WaitsForTheBackoff) {
  Nodes(1);
  const JobId job = Add({});
  snapshot.jobs[0].eligible_at = kNow + 500;
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kBackoff);
  EXPECT_EQ(decisions.look_again, kNow + 500);
}

// It was said to be retried soon.
TEST_F(ScheduleTest, AHeldJobDoesNotWaitForItsBackoff) {
  Nodes(1);
  const JobId job = Add({});
  snapshot.jobs[0].eligible_at = kNow + 500;
  snapshot.jobs[0].held = "held by ann";
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kInfeasible);
  EXPECT_GT(decisions.look_again, kNow + 500);
}

TEST_F(ScheduleTest, CordonDrainAndNotice) {
  Nodes(2);
  const JobId saves = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId cannot = Add({.gpus = 3, .checkpoints = false, .on = {{0, 1}}});
  const JobId slow = Add({.gpus = 1, .on = {{0, 1}}});
  snapshot.jobs.back().checkpoint_cost_ms = snapshot.jobs.back().grace_ms + 1;
  snapshot.nodes[0].state = NodeState::kCordoned;
  const JobId next = Add({.gpus = 4});
  Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  ASSERT_THAT(Started(decisions), ElementsAre(next));
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{1, 1}));
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}});  // no room to move to
  snapshot.nodes[0].state = NodeState::kDraining;
  EXPECT_THAT(Stopped(Run()), ElementsAre(saves));
  snapshot.nodes[0].until = kNow + 60'000;
  EXPECT_THAT(Stopped(Run()), ElementsAre(saves, cannot, slow));
}

TEST_F(ScheduleTest, WorkersMoveOffADrainingNode) {
  Nodes(4);
  const JobId whole = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId gang = Add({.workers = 2, .gpus = 4, .on = {{0, 1}, {1, 1}}});
  const JobId large = Add({.gpus = 8, .on = {{3, 1}}});
  for (const int node : {0, 3}) {
    snapshot.nodes[node].state = NodeState::kDraining;
    snapshot.nodes[node].until = kNow + 120'000;
  }
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.resizes.size(), 2u);
  EXPECT_EQ(decisions.resizes[0].job, whole);
  EXPECT_THAT(decisions.resizes[0].target, ElementsAre(Placed{1, 1}));
  EXPECT_EQ(decisions.resizes[1].job, gang);  // only what has to
  EXPECT_THAT(decisions.resizes[1].target, ElementsAre(Placed{1, 1}, Placed{2, 1}));
  EXPECT_THAT(Stopped(decisions), ElementsAre(large));
}

TEST_F(ScheduleTest, AnElasticJobGoesOnWithoutItsWorkersOnADrainingNode) {
  Nodes(2);
  const JobId elastic = Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}});
  snapshot.nodes[0].state = NodeState::kDraining;
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, elastic);
  EXPECT_THAT(decisions.resizes[0].target, ElementsAre(Placed{1, 1}));
}

TEST_F(ScheduleTest, AGangLeavesADrainingNodeWithinItsDomain) {
  Nodes(6);
  snapshot.topology_levels = {"rack"};
  for (int node = 0; node < 6; ++node) snapshot.nodes[node].labels["rack"] = node < 3 ? "a" : "b";
  const WorkerRequest in_one_rack{.topology_level = "rack", .topology_required = true};
  Add({.workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}, .request = in_one_rack});
  snapshot.nodes[0].state = NodeState::kDraining;
  const auto target = [&] {
    const Decisions decisions = Run();
    EXPECT_EQ(decisions.resizes.size(), 1u);
    return decisions.resizes.empty() ? Placement{} : decisions.resizes[0].target;
  };
  EXPECT_THAT(target(), ElementsAre(Placed{1, 1}, Placed{2, 1})) << "only what has to move";
  Add({.gpus = 8, .checkpoints = false, .on = {{2, 1}}});
  EXPECT_THAT(target(), ElementsAre(Placed{3, 1}, Placed{4, 1}));
  for (const int node : {3, 4}) Add({.gpus = 8, .checkpoints = false, .on = {{node, 1}}});
  snapshot.jobs[0].min_workers = 1;
  EXPECT_THAT(target(), ElementsAre(Placed{1, 1})) << "as many workers as anywhere";
  snapshot.nodes[1].labels.clear();  // the configuration has changed
  EXPECT_THAT(target(), ElementsAre(Placed{1, 1}));
}

TEST_F(ScheduleTest, AnElasticJobThatSavesTooSlowlyIsShrunkOnlyIfTheNodeGoesAway) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 4, .on = {{0, 1}, {1, 1}}});
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms + 1;
  snapshot.nodes[0].state = NodeState::kDraining;
  EXPECT_THAT(Run().resizes, IsEmpty());
  snapshot.nodes[0].until = kNow + 120'000;
  ASSERT_EQ(Run().resizes.size(), 1u);
}

TEST_F(ScheduleTest, GrowsOnlyIfItWillEndSoonerByMuchMoreThanTheRestartTakes) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}}, .ran_ms = 20 * kMinute});
  Job& job = snapshot.jobs[0];
  const TimeMs restart = job.restart_cost_ms + job.checkpoint_cost_ms;
  // It has done 10 minutes of its work. The rest takes twice as long with one of two workers:
  // growing saves half of that.
  job.run_time.fill(10 * kMinute + 110 * restart);
  EXPECT_THAT(Run().resizes, testing::SizeIs(1));
  job.run_time.fill(10 * kMinute + 90 * restart);
  const Decisions later = Run();
  EXPECT_THAT(later.resizes, testing::IsEmpty());
  EXPECT_EQ(later.look_again, kNow + ScheduleOptions{}.min_between_resizes_ms);
}

TEST_F(ScheduleTest, AHeldJobThatRunsDoesNotGrow) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 4, .on = {{0, 1}}});
  ASSERT_EQ(Run().resizes.size(), 1u);
  snapshot.jobs[0].held = "its queue is gone";
  EXPECT_THAT(Run().resizes, IsEmpty());
}

TEST_F(ScheduleTest, SameSnapshotSameDecisions) {
  Nodes(3);
  for (int job = 0; job < 20; ++job)
    Add({.priority = job % 3, .workers = 1 + job % 2, .gpus = 1 + job % 8});
  const Decisions a = Run(), b = Run();
  EXPECT_EQ(Started(a), Started(b));
  ASSERT_EQ(a.waits.size(), b.waits.size());
  for (size_t wait = 0; wait < a.waits.size(); ++wait)
    EXPECT_EQ(a.waits[wait].job, b.waits[wait].job);
}

}  // namespace
}  // namespace renzan::cluster
