#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReservationTest : public ScheduleTest {};

TEST_F(ReservationTest, TheFirstBlockedJobGetsAReservationAndOnlyYieldingJobsBackfill) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId large = Add({.workers = 2, .gpus = 8});
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
  Add({.workers = 2, .gpus = 8});
  const JobId slow = Add({.gpus = 8});
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms + 1;
  EXPECT_EQ(ReasonOf(Run(), slow), WaitReason::kReserved);
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms;
  EXPECT_THAT(Started(Run()), ElementsAre(slow));
}

TEST_F(ReservationTest, BackfilledJobsYieldOnceTheReservedJobThenFits) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  const JobId large = Add({.workers = 2, .gpus = 8});
  const Decisions decisions = Run();
  ASSERT_THAT(Stopped(decisions), ElementsAre(1));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReservation);
  EXPECT_EQ(ReasonOf(decisions, large), WaitReason::kPipelined);
}

TEST_F(ReservationTest, BackfilledJobsStayWhileAnotherJobBlocksTheReservation) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  Add({.gpus = 8, .on = {{1, 1}}});
  Add({.workers = 2, .gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster
