#include "renzan/cluster/core/validate/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/validator_testing.h"

namespace renzan::cluster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(Validator, InvalidSnapshots) {
  const auto expect = [&](const std::string& fault) {
    EXPECT_THAT(ValidateSnapshot(snapshot), Contains(HasSubstr(fault)));
    EXPECT_THAT(ValidateDecisions(snapshot, decisions), Contains(HasSubstr(fault)));
  };
  Job& job = AddRunning(0, 8, {{0, 1}, {1, 1}});
  EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty());
  const Job whole = job;

  job.placement = {{0, 2}};
  expect("node own-0: resource 2: 16 of 8 used now");
  job.placement = {{0, 1}};
  expect("1 worker, not 2..2");
  job.placement = {{1, 1}, {0, 1}};
  expect("not in order");
  job = whole;
  job.queue = 2;
  expect("does not exist");
  job = whole;
  job.target = {{2, 1}, {3, 1}};
  expect("is not resizing, but has a target");
  job.state = JobState::kPending;
  expect("is pending, but has a placement");
  job = whole;
  snapshot.nodes[1].state = NodeState::kGone;
  expect("node own-1 is not up");
  snapshot.nodes[1].state = NodeState::kDraining;
  EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty());
  snapshot.jobs.push_back(whole);
  expect("not in order of id");
}

TEST_F(Validator, AResizingJobHoldsBothPlacements) {
  Job& moving = AddRunning(0, 8, {{0, 1}, {1, 1}});
  moving.state = JobState::kResizing;
  moving.target = {{1, 1}, {2, 1}};
  EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty());
  AddRunning(0, 4, {{2, 1}});
  EXPECT_THAT(ValidateSnapshot(snapshot), Contains(HasSubstr("node own-2: resource 2: 12 of 8")));
}

TEST_F(Validator, EveryPendingJobHasExactlyOneDecision) {
  Add(0, 8);
  ExpectFault("job 1 is pending and neither starts nor waits");
  decisions.waits = {{1, WaitReason::kUserCap}};
  ExpectClean();
  decisions.starts = {{1, {{0, 1}}}};
  ExpectFault("job 1 is pending and both starts and waits");
  decisions.waits = {};
  ExpectClean();
  decisions.starts.push_back({1, {{1, 1}}});
  ExpectFault("starts twice");
  decisions.starts = {{2, {{1, 1}}}};
  ExpectFault("start of job 2, which does not exist");
}

TEST_F(Validator, StartsAreWholeGangsOnFreeResources) {
  Add(0, 8, 2);
  decisions.starts = {{1, {{0, 1}}}};
  ExpectFault("start of job 1: 1 worker, not 2..2");
  decisions.starts = {{1, {{0, 1}, {2, 1}}}};
  ExpectClean();
  snapshot.nodes[2].state = NodeState::kBooting;
  ExpectFault("new workers on node own-2, which is not ready");
  snapshot.nodes[2].state = NodeState::kReady;
  AddRunning(0, 1, {{2, 1}}).state = JobState::kStopping;
  ExpectFault("node own-2: resource 2: 9 of 8 used after this cycle");
  snapshot.jobs[0].eligible_at = snapshot.now + 1;
  ExpectFault("job 1 starts at 1000000, before 1000001");
}

TEST_F(Validator, LabelsAndTopology) {
  Job& job = Add(0, 8, 2);
  SetRequest(job, {.per_worker = Gpus(8), .topology_level = "rack", .topology_required = true});
  decisions.starts = {{1, {{1, 1}, {2, 1}}}};
  ExpectFault("its workers are not in one rack");
  decisions.starts = {{1, {{0, 1}, {1, 1}}}};
  ExpectClean();
  SetRequest(job, {.per_worker = Gpus(4), .topology_level = "host", .topology_required = true});
  ExpectFault("its workers are not in one host");
  SetRequest(job, {.per_worker = Gpus(8), .required = {{"gpu_model", "h100"}}});
  ExpectFault("node own-0 lacks a required label");
}

// Labels can be edited, and pools renamed, while a job runs.
TEST_F(Validator, LabelsApplyOnlyToNewWorkers) {
  Job& job = AddRunning(0, 4, {{0, 1}, {2, 1}});
  SetRequest(job, {.per_worker = Gpus(4),
                   .required = {{"gpu_model", "h100"}},
                   .topology_level = "rack",
                   .topology_required = true});
  job.min_workers = 1;
  job.max_workers = 3;
  EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty());
  ExpectClean();
  snapshot.nodes[0].state = NodeState::kDraining;
  decisions.resizes = {{1, {{2, 1}}}};
  ExpectClean();
  decisions.resizes = {{1, {{2, 2}}}};
  ExpectFault("node own-2 lacks a required label");
}

TEST_F(Validator, AFaultOnlyAffectsDecisionsThatInvolveIt) {
  AddRunning(0, 8, {{0, 2}});  // twice the capacity
  AddRunning(0, 8, {{1, 1}}).min_workers = 2;
  snapshot.jobs[1].max_workers = 2;
  AddRunning(0, 8, {{2, 1}});
  for (int pending = 0; pending < 3; ++pending) Add(0, 8).priority = 1;
  decisions.starts = {{4, {{0, 1}}}, {5, {{3, 1}}}};
  decisions.stops = {{2, StopReason::kPreempted, 6}, {3, StopReason::kPreempted, 6}};
  decisions.waits = {{6, WaitReason::kPipelined}};
  EXPECT_THAT(ValidateDecisions(snapshot, decisions), Not(IsEmpty()));

  Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.faults, Not(IsEmpty()));
  EXPECT_THAT(validated.violations, IsEmpty());
  ASSERT_THAT(validated.decisions.starts, testing::SizeIs(1));
  EXPECT_EQ(validated.decisions.starts[0].job, 5);
  EXPECT_THAT(validated.decisions.stops,
              IsEmpty());  // stopping only one of the two would be wasted
  for (const Wait& wait : validated.decisions.waits) EXPECT_EQ(wait.reason, WaitReason::kWithheld);
  EXPECT_THAT(validated.decisions.waits, testing::SizeIs(2));

  // A stop for a draining node is kept even for a faulty job.
  snapshot.nodes[1].state = NodeState::kDraining;
  decisions.stops = {{2, StopReason::kNodeLeaving}};
  decisions.waits = {{6, WaitReason::kResources}};
  EXPECT_THAT(Validate(snapshot, decisions).decisions.stops, testing::SizeIs(1));

  // If decisions together violate an invariant, the last one is not carried out.
  decisions.starts.push_back({6, {{3, 1}}});
  decisions.waits = {};
  validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, Contains(HasSubstr("node own-3: resource 2: 16 of 8")));
  ASSERT_THAT(validated.decisions.starts, testing::SizeIs(1));
  EXPECT_EQ(validated.decisions.starts[0].job, 5);
  EXPECT_THAT(validated.decisions.stops, testing::SizeIs(1));
  EXPECT_THAT(validated.decisions.waits, testing::SizeIs(2));
}

TEST_F(Validator, LimitsAndCaps) {
  AddRunning(1, 8, {{0, 1}, {1, 1}});
  Add(1, 8);
  Add(0, 8).user = 1;
  decisions.starts = {{2, {{2, 1}}}, {3, {{3, 1}}}};
  ExpectClean();
  snapshot.queues[1].limit[kGpu] = 23;
  ExpectFault("queue b: resource 2: 24 in use after this cycle, the limit is 23");
  snapshot.queues[1].limit[kGpu] = 24;
  snapshot.users[1].max_gpus = 7;
  ExpectFault("user bob: 8 GPUs after this cycle, the cap is 7");
  snapshot.users[1].quota_overrides = {{.max_gpus = 8, .until = snapshot.now + 1}};
  ExpectClean();
  snapshot.users[1].quota_overrides[0].until = snapshot.now;
  ExpectFault("user bob");
}

TEST_F(Validator, JobsThatAreNotPreemptibleStayWithinGuaranteedQuota) {
  AddRunning(0, 4, {{0, 1}}).preemptible = false;
  AddRunning(0, 8, {{1, 1}});  // borrows
  Add(0, 4).preemptible = false;
  decisions.starts = {{3, {{2, 1}}}};
  ExpectClean();
  snapshot.queues[0].guaranteed[kGpu] = 7;
  ExpectFault(
      "queue a: resource 2: jobs that are not preemptible use 8 after this cycle, the "
      "guaranteed quota is 7");
  snapshot.jobs[2].preemptible = true;
  ExpectClean();
  // Nobody is guaranteed any CPUs: a limit binds only its own queue.
  snapshot.jobs[2].preemptible = false;
  snapshot.queues[0].guaranteed[kGpu] = 8;
  snapshot.queues[1].limit[kCpu] = 64'000;
  ExpectClean();
}

TEST_F(Validator, AGrandChallengeIsExemptFromQuotas) {
  Add(1, 8, 4).user = 1;
  decisions.starts = {{1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}}};
  ExpectFault("queue b");
  ExpectFault("user bob");
  snapshot.jobs[0].quota_exempt = true;
  snapshot.jobs[0].preemptible = false;
  ExpectClean();
}

TEST_F(Validator, BeingOverACapIsAViolationOnlyIfTheCycleAddsMore) {
  AddRunning(0, 8, {{0, 1}, {1, 1}}).user = 1;
  ExpectClean();
  Add(0, 1).user = 1;
  decisions.starts = {{2, {{2, 1}}}};
  ExpectFault("user bob: 17 GPUs");
}

TEST_F(Validator, OnlyJobsThatCheckpointAreBackfilledOrResized) {
  Add(0, 8).checkpoints = false;
  decisions.starts = {{1, {{0, 1}}, true}};
  ExpectFault("is backfilled, but cannot be stopped without loss");
  decisions.starts = {};
  snapshot.jobs[0].state = JobState::kRunning;
  snapshot.jobs[0].placement = {{0, 1}};
  snapshot.jobs[0].max_workers = 2;
  decisions.resizes = {{1, {{0, 1}, {1, 1}}}};
  ExpectFault("is resized, but does not checkpoint");
  snapshot.jobs[0].checkpoints = true;
  ExpectClean();
  snapshot.jobs[0].held = "its queue is gone";
  ExpectFault("job 1 grows, but is held: its queue is gone");
  snapshot.jobs[0].held = "";
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms + 1;
  ExpectFault("job 1 is resized, but does not save within its grace period");
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms;
  snapshot.nodes[1].state = NodeState::kDraining;
  ExpectFault("new workers on node own-1");
  decisions.resizes = {{1, {{2, 1}}}};
  ExpectFault("job 1 is moved, although none of its nodes is draining");
  snapshot.nodes[0].state = NodeState::kDraining;
  ExpectClean();
  decisions.stops = {{1, StopReason::kNodeLeaving}};
  ExpectFault("is stopped and resized");
}

TEST_F(Validator, NodeLeavingAndOverCapMustBeTrue) {
  AddRunning(0, 8, {{0, 1}}).user = 1;
  AddRunning(0, 4, {{1, 1}}).user = 1;
  decisions.stops = {{1, StopReason::kNodeLeaving}};
  ExpectFault("none of its nodes is draining");
  snapshot.nodes[0].state = NodeState::kDraining;
  ExpectClean();
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms + 1;
  ExpectFault("job 1 cannot save its work, but is stopped for a drain without a deadline");
  snapshot.nodes[0].until = snapshot.now + 60'000;
  ExpectClean();
  snapshot.nodes[0].state = NodeState::kReady;
  snapshot.nodes[0].until = kNever;
  snapshot.jobs[0].checkpoint_cost_ms = 0;
  decisions.stops = {{2, StopReason::kOverCap}};
  ExpectClean();
  decisions.stops = {{1, StopReason::kOverCap}, {2, StopReason::kOverCap}};
  ExpectFault("stopped for a cap that holds without that");  // either is enough
  AddRunning(0, 8, {{2, 1}}).user = 1;
  decisions.stops = {{1, StopReason::kOverCap}, {2, StopReason::kOverCap}};
  ExpectClean();  // the small one first was not enough
  snapshot.users[1].max_gpus = 16;
  ExpectFault("stopped for a cap that holds without that");
  decisions.stops = {{1, StopReason::kPreempted}};
  ExpectFault("is stopped (preempted) without a preemptor");
}

TEST_F(Validator, Reservations) {
  Add(0, 8, 2);
  decisions.waits = {{1, WaitReason::kUserCap}};
  decisions.reservations = {{1, {{0, 1}, {1, 1}}}};
  ExpectClean();
  decisions.reservations = {{1, {{0, 2}}}};
  ExpectFault("node own-0 is reserved beyond its capacity");
  decisions.reservations = {{1, {{0, 1}}}};
  ExpectFault("reservation of job 1: 1 worker");
  decisions.reservations = {{1, {{0, 1}, {1, 1}}}};
  snapshot.nodes[1].state = NodeState::kDraining;
  ExpectFault("on node own-1, which is not ready or booting");
}

TEST_F(Validator, RoomIsKeptForWhoeverIsFirstByPriority) {
  for (Queue& queue : snapshot.queues) queue.guaranteed = {};
  for (int node = 0; node < 4; ++node)
    for (int half = 0; half < 2; ++half) {
      Job& low = AddRunning(0, 4, {{node, 1}});
      low.preemptible = low.checkpoints = false;
    }
  const JobId gang = Add(0, 8).id;
  snapshot.jobs.back().priority = 1;
  decisions.waits = {{gang, WaitReason::kResources}};
  ExpectFault("job 9 waits (resources) for jobs of lower priority, but no room is kept for it");
  decisions.reservations = {{gang, {{0, 1}}}};
  ExpectClean();
  decisions.reservations.clear();
  snapshot.jobs[0].priority = snapshot.jobs[2].priority = snapshot.jobs[4].priority =
      snapshot.jobs[6].priority = 1;
  ExpectClean();  // of equal priority
}

TEST_F(Validator, NobodyOfLowerPriorityTakesRoomThatIsKept) {
  for (Queue& queue : snapshot.queues) queue.guaranteed = {};
  for (int node = 0; node < 4; ++node) AddRunning(0, 4, {{node, 1}}).preemptible = false;
  const JobId gang = Add(0, 8).id;
  snapshot.jobs.back().priority = 1;
  const JobId low = Add(1, 2).id;
  snapshot.jobs.back().preemptible = false;
  snapshot.reservations = decisions.reservations = {{gang, {{0, 1}}}};
  decisions.waits = {{gang, WaitReason::kResources}};
  decisions.starts = {{low, {{0, 1}}}};
  const char* fault = "job 6 starts on node own-0 in room that is kept for job 5";
  ExpectFault(fault);
  decisions.starts = {{low, {{1, 1}}}};
  ExpectClean();
  decisions.starts = {{low, {{0, 1}}}};
  snapshot.jobs.back().run_time.fill(1);  // it may be done in time
  ExpectClean();
  snapshot.jobs.back().run_time.fill(0);
  snapshot.jobs.back().preemptible = true;
  ExpectClean();
  snapshot.jobs.back().preemptible = false;
  snapshot.jobs.back().priority = 1;
  ExpectClean();
  snapshot.jobs.back().priority = 0;
  ExpectFault(fault);
  // What others hold must end first, of which it uses nothing; and it leaves enough of the rest.
  SetRequest(snapshot.jobs[4], {.per_worker = {.amount = {1'000, 1'024, 8}}});
  SetRequest(snapshot.jobs[5], {.per_worker = {.amount = {1'000, 1'024, 0}}});
  ExpectClean();
}

TEST_F(Validator, PoolsAndBudget) {
  decisions.scale_out = {{1, 1}};
  ExpectClean();
  decisions.scale_out = {{1, 2}};
  ExpectFault("the budget is 15");
  snapshot.budget_per_hour = 30;
  ExpectClean();
  decisions.scale_out = {{1, 3}};
  ExpectFault("pool spot grows to 3 nodes of 2");
  decisions.scale_out = {{0, 1}};
  ExpectFault("pool own grows to 5 nodes of 4");
  decisions.scale_out = {};
  decisions.scale_in = {{3}};
  ExpectFault("pool own shrinks below 4 nodes");
  snapshot.pools[0].min_nodes = 3;
  ExpectClean();
  Add(0, 8);
  decisions.starts = {{1, {{3, 1}}}};
  ExpectFault("node own-3 is returned, but is needed");
}

TEST_F(Validator, CheckpointsAndLookAgain) {
  AddRunning(0, 8, {{0, 1}});
  decisions.checkpoints = {1};
  decisions.look_again = snapshot.now + 1;
  ExpectClean();
  decisions.look_again = snapshot.now;
  ExpectFault("look again at 1000000, which is not after");
  decisions.checkpoints = {1, 1};
  ExpectFault("two checkpoints");
  snapshot.jobs[0].checkpoints = false;
  ExpectFault("but cannot make one now");
}

}  // namespace
}  // namespace renzan::cluster
