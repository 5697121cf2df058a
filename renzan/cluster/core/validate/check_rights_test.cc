#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/validator_testing.h"

namespace renzan::cluster {
namespace {

// Which job may preempt which: job 2 wants the node where job 1 runs.
class Right : public Validator {
 protected:
  Right() {
    AddRunning(0, 8, {{0, 1}});
    Add(0, 8);
    for (int node = 1; node < 4; ++node) snapshot.nodes[node].state = NodeState::kGone;
    decisions.waits = {{2, WaitReason::kPipelined}};
    decisions.stops = {{1, StopReason::kPreempted, 2}};
  }
  Job& victim() { return snapshot.jobs[0]; }
  Job& preemptor() { return snapshot.jobs[1]; }
  void Because(StopReason reason) { decisions.stops[0].reason = reason; }
};

TEST_F(Right, WithinAQueueByPriority) {
  ExpectFault("job 2 (queue a, priority 0) may not stop or shrink job 1 (preempted)");
  preemptor().priority = 1;
  ExpectClean();
  Because(StopReason::kReclaimed);
  ExpectFault("may not stop or shrink");
  Because(StopReason::kPreempted);
  victim().preemptible = false;
  ExpectFault("is not preemptible");
}

TEST_F(Right, AQueueReclaimsFromOneThatBorrows) {
  preemptor().queue = 1;
  Because(StopReason::kReclaimed);
  ExpectFault("queue a does not borrow enough for all of these jobs to be preempted: 1");
  snapshot.queues[0].guaranteed[kGpu] = 7;
  ExpectClean();
  victim().priority = 5;
  ExpectClean();
  snapshot.queues[1].guaranteed[kGpu] = 7;
  ExpectFault("may not stop or shrink");
  preemptor().priority = 6;
  ExpectFault("may not stop or shrink");  // it may by priority, but the reason given is reclaim
  Because(StopReason::kPreempted);
  ExpectClean();
}

TEST_F(Right, ALimitOfAnotherQueueMakesNothingBorrowed) {
  preemptor().queue = 1;
  preemptor().priority = 1;
  ExpectFault("queue a does not borrow enough");
  snapshot.queues[1].limit[kCpu] = 64'000;
  ExpectFault("queue a does not borrow enough");
  Because(StopReason::kReclaimed);
  ExpectFault("queue a does not borrow enough");
  snapshot.queues[0].guaranteed[kGpu] = 7;
  ExpectClean();  // within its own guaranteed quota
}

TEST_F(Right, WithoutQuotasOnlyPriorityCounts) {
  for (Queue& queue : snapshot.queues) queue = {.name = queue.name};
  preemptor().queue = 1;
  ExpectFault("may not stop or shrink");
  preemptor().priority = 1;
  ExpectClean();
}

TEST_F(Right, ParentsTakeThePlaceOfTheirQueues) {
  preemptor().queue = 1;
  Because(StopReason::kReclaimed);
  snapshot.queues[0].guaranteed[kGpu] = 0;
  ExpectClean();
  // What queue a uses is within what its parent is guaranteed,
  snapshot.queues.push_back({.name = "parent", .guaranteed = {.amount = {0, 0, 8}}});
  snapshot.queues[0].parent = 2;
  ExpectFault("queue parent does not borrow enough for all of these jobs to be preempted: 1");
  // which does not protect it from its parent's other queues,
  snapshot.queues[1].parent = 2;
  ExpectClean();
  // nor is it theirs beyond their own guarantee.
  snapshot.queues[1].guaranteed[kGpu] = 7;
  ExpectFault("job 2 (queue b, priority 0) may not stop or shrink job 1");
  snapshot.queues[0].parent.reset();
  ExpectClean();
}

TEST_F(Right, ParentsOfParentsTakeTheirPlaceToo) {
  preemptor().queue = 1;
  Because(StopReason::kReclaimed);
  snapshot.queues[0].guaranteed[kGpu] = 0;
  snapshot.queues.push_back({.name = "parent", .guaranteed = {.amount = {0, 0, 7}}, .parent = 3});
  snapshot.queues.push_back({.name = "above", .guaranteed = {.amount = {0, 0, 8}}});
  snapshot.queues[0].parent = 2;
  ExpectFault("queue above does not borrow enough for all of these jobs to be preempted: 1");
  // Below it, what the parent is guaranteed counts.
  snapshot.queues[1].parent = 3;
  ExpectClean();
  snapshot.queues[2].guaranteed[kGpu] = 8;
  ExpectFault("queue parent does not borrow enough for all of these jobs to be preempted: 1");
}

TEST_F(Right, EarlierPreemptorsCountAgainstTheGuaranteedQuota) {
  snapshot.queues[0].guaranteed[kGpu] = 0;
  preemptor().queue = 1;
  Because(StopReason::kReclaimed);
  snapshot.nodes[1].state = NodeState::kReady;
  AddRunning(0, 8, {{1, 1}});
  Add(1, 8);
  decisions.waits.push_back({4, WaitReason::kPipelined});
  decisions.stops.push_back({3, StopReason::kReclaimed, 4});
  ExpectFault("job 4 (queue b, priority 0) may not stop or shrink job 3");
  snapshot.queues[1].guaranteed[kGpu] = 16;
  ExpectClean();
}

TEST_F(Right, ReclaimsOnlyUntilTheQueueNoLongerBorrows) {
  snapshot.nodes[1].state = NodeState::kReady;
  preemptor().queue = 1;
  snapshot.queues[1].guaranteed[kGpu] = 16;
  preemptor().min_workers = preemptor().max_workers = 2;
  AddRunning(0, 8, {{1, 1}});
  decisions.stops = {{1, StopReason::kReclaimed, 2}, {3, StopReason::kReclaimed, 2}};
  ExpectFault("queue a does not borrow enough for all of these jobs to be preempted: 1 3");
  snapshot.queues[0].guaranteed[kGpu] = 7;
  ExpectClean();
}

TEST_F(Right, BackfilledJobsYield) {
  Because(StopReason::kReservation);
  ExpectFault("may not stop or shrink");
  victim().backfilled = true;
  victim().priority = 9;
  ExpectFault("may not stop or shrink");  // its nodes are not reserved for the preemptor
  snapshot.reservations = {{preemptor().id, victim().placement}};
  ExpectClean();
}

TEST_F(Right, AGrandChallengeMayStopAnyPreemptibleJob) {
  Because(StopReason::kGrandChallenge);
  ExpectFault("may not stop or shrink");
  preemptor().quota_exempt = true;
  preemptor().preemptible = false;
  victim().priority = 9;
  victim().queue = 1;
  ExpectClean();
}

TEST_F(Right, ThePreemptorMustBePipelined) {
  preemptor().priority = 1;
  decisions.waits[0].reason = WaitReason::kResources;
  ExpectFault("job 1 yields to job 2, which is not pipelined");
}

TEST_F(Right, ElasticJobsYieldWorkersAboveTheirMinimum) {
  victim() = {.id = 1,
              .request = snapshot.InternRequest({.per_worker = Gpus(2)}),
              .max_workers = 4,
              .checkpoints = true,
              .state = JobState::kRunning,
              .placement = {{0, 4}}};
  SetRequest(preemptor(), {.per_worker = Gpus(4)});
  decisions.stops = {};
  decisions.resizes = {{1, {{0, 2}}, 2}};
  ExpectClean();  // to equal priority
  victim().priority = 1;
  ExpectFault("may not stop or shrink");
  preemptor().priority = 1;
  decisions.resizes = {{1, {{0, 3}}, 2}};
  ExpectFault("will not fit together once others have stopped: 2");
  victim().placement = {{0, 2}};
  ExpectFault("grows on behalf");
  victim().placement = {{0, 4}};
  decisions.resizes = {{1, {{0, 2}}}};
  ExpectFault("is shrunk for no reason");
}

TEST_F(Right, ThePreemptorMustFitAfterwards) {
  preemptor().priority = 1;
  SetRequest(preemptor(), {.per_worker = Gpus(8), .required = {{"rack", "1"}}});
  ExpectFault("will not fit together once others have stopped: 2");
  SetRequest(preemptor(), {.per_worker = Gpus(8)});
  ExpectClean();
  Add(0, 1);  // there is room for only one of them
  decisions.waits.push_back({3, WaitReason::kPipelined});
  ExpectFault("will not fit together once others have stopped: 2 3");
}

TEST_F(Right, ThePreemptorMustHaveQuotaAfterwards) {
  preemptor().priority = 1;
  snapshot.queues[0].limit[kGpu] = 7;
  ExpectFault("job 2 is pipelined, but queue a would exceed its limit");
  snapshot.queues[0].limit[kGpu] = 8;
  ExpectClean();
  preemptor().user = 1;
  snapshot.users[1].max_gpus = 7;
  ExpectFault("user bob would exceed the cap");
}

TEST_F(Right, ResourcesOfStoppingJobsCount) {
  victim().state = JobState::kStopping;
  decisions.stops = {};
  ExpectClean();
  victim().state = JobState::kRunning;
  ExpectFault("will not fit");
}

}  // namespace
}  // namespace renzan::cluster
