#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ReservationTest : public ScheduleTest {
 protected:
  JobId AddOverdue(const JobSketch& sketch) {
    const JobId id = Add(sketch);
    snapshot.Find(id)->waiting_since = kNow - 25 * kHour;
    return id;
  }
};

TEST_F(ReservationTest, AnOverdueJobGetsAReservationAndOnlyYieldingJobsBackfill) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = Run().reservations;
  const JobId stubborn = Add({.gpus = 8, .checkpoints = false});
  const JobId yields = Add({.gpus = 8});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, large);
  EXPECT_EQ(ReasonOf(decisions, stubborn), WaitReason::kReserved);
  ASSERT_THAT(Started(decisions), ElementsAre(yields));
  EXPECT_TRUE(decisions.starts[0].backfill);
}

TEST_F(ReservationTest, AJobThatCannotCheckpointWithinItsGraceIsNotBackfilled) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = Run().reservations;
  const JobId slow = Add({.gpus = 8});
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms + 1;
  EXPECT_EQ(ReasonOf(Run(), slow), WaitReason::kReserved);
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms;
  EXPECT_THAT(Started(Run()), ElementsAre(slow));
}

TEST_F(ReservationTest, BackfilledJobsYieldOnceTheReservedJobThenFits) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  const Decisions decisions = Run();
  ASSERT_THAT(Stopped(decisions), ElementsAre(1));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReservation);
  EXPECT_EQ(ReasonOf(decisions, large), WaitReason::kPipelined);
}

TEST_F(ReservationTest, BackfilledJobsStayWhileAnotherJobBlocksTheReservation) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  Add({.gpus = 8, .on = {{1, 1}}});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(ReservationTest, OnlyJobsOnItsOwnNodesYield) {
  Nodes(3);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  Add({.gpus = 8, .on = {{1, 1}}});
  Add({.gpus = 8, .on = {{2, 1}}});
  const JobId large = AddOverdue({.gpus = 8});
  const JobId other = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = {{large, {{1, 1}}}, {other, {{0, 1}, {2, 1}}}};
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(ReservationTest, AnOwnerKeepsItsNodesUntilItHasStarted) {
  Nodes(3);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}, .ran_ms = 2 * kHour});
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}, .ran_ms = kHour});
  Add({.gpus = 8, .checkpoints = false, .on = {{2, 1}}, .ran_ms = kHour});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  EXPECT_EQ(Run().reservations, snapshot.reservations);
  snapshot.reservations.clear();
  const std::vector<Reservation> cheapest = {{large, {{1, 1}, {2, 1}}}};
  EXPECT_EQ(Run().reservations, cheapest);
  snapshot.reservations = cheapest;
  snapshot.jobs.erase(snapshot.jobs.begin(), snapshot.jobs.begin() + 2);
  const Decisions decisions = Run();  // nodes 0 and 1 are free
  EXPECT_THAT(Started(decisions), ElementsAre(large));
  EXPECT_THAT(decisions.reservations, IsEmpty());
}

TEST_F(ReservationTest, NodesThatLoseALabelTheOwnerNeedsAreGivenUp) {
  Nodes(4);
  for (int node = 0; node < 4; ++node) {
    snapshot.nodes[node].labels = {{"gpu", "h200"}};
    Add({.gpus = 8, .checkpoints = false, .on = {{node, 1}}, .ran_ms = (9 - node) * 10 * kMinute});
  }
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  WorkerRequest request = snapshot.worker_requests[snapshot.Find(large)->request];
  request.required = {{"gpu", "h200"}};
  snapshot.Find(large)->request = snapshot.InternRequest(request);
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  EXPECT_EQ(Run().reservations, snapshot.reservations);
  snapshot.nodes[1].labels.clear();
  EXPECT_EQ(Run().reservations, (std::vector<Reservation>{{large, {{2, 1}, {3, 1}}}}));
}

TEST_F(ReservationTest, NodesThatAreNoLongerInOneRackAreGivenUp) {
  Nodes(4);
  snapshot.topology_levels = {"rack"};
  for (int node = 0; node < 4; ++node) {
    snapshot.nodes[node].labels = {{"rack", node < 2 ? "a" : "b"}};
    Add({.gpus = 8, .checkpoints = false, .on = {{node, 1}}, .ran_ms = (9 - node) * 10 * kMinute});
  }
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  WorkerRequest request = snapshot.worker_requests[snapshot.Find(large)->request];
  request.topology_level = "rack";
  request.topology_required = true;
  snapshot.Find(large)->request = snapshot.InternRequest(request);
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  EXPECT_EQ(Run().reservations, snapshot.reservations);
  snapshot.nodes[1].labels["rack"] = "c";
  EXPECT_EQ(Run().reservations, (std::vector<Reservation>{{large, {{2, 1}, {3, 1}}}}));
}

TEST_F(ReservationTest, DoesNotBindJobsOfHigherPriority) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  const JobId equal = Add({.gpus = 8, .checkpoints = false});
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  EXPECT_EQ(ReasonOf(Run(), equal), WaitReason::kReserved);
  snapshot.Find(equal)->priority = 1;
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(equal));
  EXPECT_FALSE(decisions.starts[0].backfill);
  EXPECT_EQ(decisions.reservations, snapshot.reservations);
}

TEST_F(ReservationTest, OfABorrowerDoesNotBindWhoIsWithinQuota) {
  TwoQueues(8, 0);
  Nodes(2);
  Add({.queue = 1, .gpus = 8, .checkpoints = false, .on = {{0, 1}}, .preemptible = false});
  const JobId borrower = AddOverdue({.queue = 1, .priority = 1, .workers = 2, .gpus = 8});
  snapshot.reservations = {{borrower, {{0, 1}, {1, 1}}}};
  const JobId other = Add({.queue = 1, .gpus = 8, .checkpoints = false});
  EXPECT_EQ(ReasonOf(Run(), other), WaitReason::kReserved);
  const JobId own = Add({.queue = 0, .gpus = 8, .checkpoints = false});
  EXPECT_THAT(Started(Run()), ElementsAre(own));
}

TEST_F(ReservationTest, DoesNotBindJobsThatWillHaveEndedBeforeItsRoomIsWhole) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  snapshot.jobs[0].expected_end = kNow + kHour;
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  const JobId small = Add({.gpus = 1, .checkpoints = false});
  EXPECT_EQ(ReasonOf(Run(), small), WaitReason::kReserved);  // nobody knows how long it will run
  Job& job = *snapshot.Find(small);
  job.run_time = {kMinute, kMinute, 2 * kMinute, 10 * kMinute, kHour + kSecond};
  EXPECT_EQ(ReasonOf(Run(), small), WaitReason::kReserved);
  job.run_time.back() = kHour;
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(small));
  EXPECT_FALSE(decisions.starts[0].backfill);
  EXPECT_EQ(decisions.reservations, snapshot.reservations);
}

TEST_F(ReservationTest, EndsWhenItsRoomWillNotBeWholeInTime) {
  Nodes(3);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}});
  Add({.gpus = 8, .checkpoints = false, .on = {{2, 1}}});
  const JobId large = AddOverdue({.workers = 2, .gpus = 8});
  snapshot.reservations = {{large, {{0, 1}, {1, 1}}}};
  // Two of three nodes, for 7.5 % of the cluster and 25 h.
  constexpr TimeMs kLongest = 25 * kHour * 75 / 1000 * 3 / 2;
  for (Job& job : snapshot.jobs) job.expected_end = kNow + kLongest - kMinute;
  EXPECT_EQ(Run().reservations, snapshot.reservations);
  snapshot.jobs[0].expected_end = kNow + kLongest + kMinute;
  EXPECT_EQ(Run().reservations, (std::vector<Reservation>{{large, {{1, 1}, {2, 1}}}}));
  snapshot.jobs[2].expected_end = kNow + kLongest + kMinute;
  EXPECT_THAT(Run().reservations, IsEmpty());
}

TEST_F(ReservationTest, NoneForAJobThatOneEndServes) {
  Nodes(1);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  AddOverdue({.gpus = 8});
  EXPECT_THAT(Run().reservations, IsEmpty());
}

TEST_F(ReservationTest, TheHeaviestWaitingFirstUpToAShareOfTheCluster) {
  Nodes(4);
  for (int node = 0; node < 4; ++node)
    for (int half = 0; half < 2; ++half) Add({.gpus = 4, .checkpoints = false, .on = {{node, 1}}});
  for (int job = 0; job < 5; ++job) AddOverdue({.gpus = 8});
  const JobId heaviest = AddOverdue({.workers = 2, .gpus = 8});
  const std::vector<Reservation> half =
      Schedule(snapshot, {.max_reserved_share = 0.5}).reservations;
  ASSERT_EQ(half.size(), 1u);
  EXPECT_EQ(half[0].job, heaviest);
  EXPECT_EQ(Schedule(snapshot, {.max_reserved_share = 0.75}).reservations.size(), 2u);
  EXPECT_EQ(Schedule(snapshot, {.max_reserved_share = 0.1}).reservations, half);
}

// Jobs of priority 0 that nobody may stop, and pending jobs of higher priority.
class ClaimTest : public ReservationTest {
 protected:
  JobId AddFixed(int64_t gpus, Placement on = {}, int priority = 0, int queue = 0) {
    return Add({.queue = queue,
                .priority = priority,
                .gpus = gpus,
                .checkpoints = false,
                .on = on,
                .preemptible = false});
  }
};

TEST_F(ClaimTest, WhoeverIsFirstByPriorityKeepsTheRoomOfJobsThatItMayNotStop) {
  Nodes(1, 4);
  for (int job = 0; job < 3; ++job) AddFixed(1, {{0, 1}});
  const JobId gang = Add({.priority = 100, .workers = 4});
  const JobId low = AddFixed(1);
  const Decisions decisions = Run();
  const std::vector<Reservation> claim = {{gang, {{0, 4}}}};
  EXPECT_EQ(decisions.reservations, claim);
  EXPECT_THAT(Started(decisions), IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, low), WaitReason::kReserved);
  snapshot.reservations = claim;
  EXPECT_EQ(Run().reservations, claim);
  snapshot.jobs.erase(snapshot.jobs.begin(), snapshot.jobs.begin() + 3);
  EXPECT_THAT(Started(Run()), ElementsAre(gang));
}

TEST_F(ClaimTest, BindsOnlyJobsThatItsOwnerPrecedesAndMayNotStop) {
  Nodes(1, 4);
  AddFixed(3, {{0, 1}});
  snapshot.jobs.back().expected_end = kNow + kHour;
  AddFixed(1, {{0, 1}});
  snapshot.jobs.back().expected_end = kNow + kHour;
  snapshot.nodes[0].capacity[kGpu] = 5;
  Add({.priority = 1, .workers = 5});
  const JobId other = AddFixed(1);
  EXPECT_EQ(ReasonOf(Run(), other), WaitReason::kReserved);
  snapshot.jobs.back().run_time = {kMinute, kMinute, kMinute, kMinute, 10 * kMinute};
  EXPECT_THAT(Started(Run()), ElementsAre(other));  // it will be done in time
  snapshot.jobs.back().run_time = {};
  snapshot.jobs.back().priority = 1;
  EXPECT_THAT(Started(Run()), ElementsAre(other));
  snapshot.jobs.back().priority = 0;
  snapshot.jobs.back().preemptible = true;  // it is stopped when its turn comes
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(other));
  EXPECT_FALSE(decisions.starts[0].backfill);
}

TEST_F(ClaimTest, StopsWhoYieldsOnceNobodyElseIsInTheWay) {
  Nodes(1, 4);
  const JobId fixed = AddFixed(1, {{0, 1}});
  const JobId yields = Add({.checkpoints = false, .on = {{0, 1}}});
  const JobId gang = Add({.priority = 1, .workers = 4});
  Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  snapshot.reservations = decisions.reservations;
  ASSERT_EQ(snapshot.reservations, (std::vector<Reservation>{{gang, {{0, 4}}}}));
  std::erase_if(snapshot.jobs, [&](const Job& job) { return job.id == fixed; });
  decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(yields));
  EXPECT_EQ(ReasonOf(decisions, gang), WaitReason::kPipelined);
}

TEST_F(ClaimTest, EndsWhenSomebodyIsInTheWayThatItsOwnerDoesNotPrecede) {
  Nodes(1, 4);
  AddFixed(2, {{0, 1}});
  AddFixed(1, {{0, 1}});
  const JobId gang = Add({.priority = 1, .workers = 4});
  snapshot.reservations = {{gang, {{0, 4}}}};
  EXPECT_EQ(Run().reservations, snapshot.reservations);
  snapshot.jobs[0].priority = 1;
  EXPECT_THAT(Run().reservations, IsEmpty());
}

TEST_F(ClaimTest, NoneForAJobThatFollowsWhoeverEnds) {
  Nodes(2, 4);
  for (int node = 0; node < 2; ++node) AddFixed(4, {{node, 1}});
  Add({.priority = 1, .gpus = 4});
  EXPECT_THAT(Run().reservations, IsEmpty());
}

TEST_F(ClaimTest, TheFirstHasOneHoweverLargeAndOthersUpToAShareOfTheCluster) {
  Nodes(4);
  for (int node = 0; node < 4; ++node)
    for (int half = 0; half < 2; ++half) AddFixed(4, {{node, 1}});
  Add({.priority = 1, .gpus = 8});
  const JobId first = Add({.priority = 2, .workers = 2, .gpus = 8});
  Add({.priority = 1, .gpus = 8});
  const Decisions one = Run();
  ASSERT_EQ(one.reservations.size(), 1u);
  EXPECT_EQ(one.reservations[0].job, first);
  EXPECT_EQ(Schedule(snapshot, {.max_reserved_share = 0.75}).reservations.size(), 2u);
  snapshot.reservations = one.reservations;
  const JobId higher = Add({.priority = 3, .gpus = 8});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, higher);
}

TEST_F(ClaimTest, NoneAgainstTheGuaranteeOfAnotherQueue) {
  TwoQueues(4, 0);
  Nodes(1, 8);
  for (int job = 0; job < 4; ++job) AddFixed(1, {{0, 1}});
  Add({.queue = 1, .priority = 1, .workers = 8});
  EXPECT_THAT(Run().reservations, IsEmpty());
}

// If it ended, another job would claim the node and keep the small one from starting, after which
// this one would claim it again.
TEST_F(ClaimTest, StaysWhileItsQueueIsAtTheLimitOnlyByWhatStartsNow) {
  Nodes(1);
  snapshot.queues[0].limit[kGpu] = 9;
  AddFixed(3, {{0, 1}});
  const JobId stops = Add({.gpus = 5, .on = {{0, 1}}});
  const JobId first = Add({.priority = 5, .gpus = 6});
  const JobId small = Add({.priority = 2, .gpus = 5});
  snapshot.Find(stops)->state = JobState::kStopping;
  snapshot.Find(stops)->stopping_for = small;
  snapshot.reservations = {{first, {{0, 1}}}};
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, small), WaitReason::kPipelined);
  EXPECT_EQ(ReasonOf(decisions, first), WaitReason::kQueueLimit);
  EXPECT_EQ(decisions.reservations, snapshot.reservations);
  snapshot.queues[0].limit[kGpu] = 8;  // by what runs
  EXPECT_THAT(Run().reservations, IsEmpty());
}

// The other is considered first, because room is made for it.
TEST_F(ClaimTest, EndsForALargeOneThatPrecedesIt) {
  Nodes(2);
  for (int node = 0; node < 2; ++node)
    for (int half = 0; half < 2; ++half) AddFixed(3, {{node, 1}});
  const JobId stops = Add({.gpus = 2, .on = {{0, 1}}});
  const JobId made_room_for = Add({.priority = 1, .gpus = 8});
  const JobId first = Add({.priority = 5, .workers = 2, .gpus = 8});
  snapshot.Find(stops)->state = JobState::kStopping;
  snapshot.Find(stops)->stopping_for = made_room_for;
  snapshot.reservations = {{made_room_for, {{0, 1}}}, {first, {{0, 1}, {1, 1}}}};
  const Decisions decisions = Run();
  ASSERT_THAT(decisions.reservations, SizeIs(1));
  EXPECT_EQ(decisions.reservations[0].job, first);
}

// The running job is within quota and the waiting one is not, whatever its priority.
TEST_F(ClaimTest, NoneOnRoomOfAJobThatStandsBetter) {
  TwoQueues(4, 0);
  Nodes(1);
  Add({.gpus = 4, .on = {{0, 1}}});
  Add({.priority = 5, .gpus = 8});
  EXPECT_THAT(Run().reservations, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster
