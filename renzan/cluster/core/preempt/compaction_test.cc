#include "renzan/cluster/core/preempt/compaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CompactionTest : public ScheduleTest {
 protected:
  // Two nodes, half full; a job that needs a whole one has waited for an hour.
  CompactionTest() {
    Nodes(2);
    first_ = AddOld({.gpus = 4, .on = {{0, 1}}});
    second_ = AddOld({.gpus = 4, .on = {{1, 1}}});
    gang_ = Add({.gpus = 8});
    snapshot.Find(gang_)->waiting_since = kNow - kHour;
    // No service, so that levels play no part.
    for (const JobId job : {first_, second_}) snapshot.Find(job)->attained_worker_ms = 0;
  }

  JobId AddOld(JobSketch sketch) {
    sketch.ran_ms = 50 * kMinute;
    const JobId id = Add(sketch);
    snapshot.Find(id)->checkpoint_cost_ms = snapshot.Find(id)->restart_cost_ms = 10 * kSecond;
    return id;
  }

  JobId first_, second_, gang_;
};

TEST_F(CompactionTest, MovesAJobIntoAHoleSoThatANodeIsWhole) {
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.resizes.size(), 1u);
  const Resize& move = decisions.resizes[0];
  EXPECT_EQ(move.on_behalf_of, gang_);
  EXPECT_EQ(move.target, (Placement{{move.job == first_ ? 1 : 0, 1}}));
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, gang_), WaitReason::kPipelined);
}

TEST_F(CompactionTest, TheGangGetsTheRoomThatWasMadeForIt) {
  const Resize move = Run().resizes.at(0);
  Job& moved = *snapshot.Find(move.job);
  moved.state = JobState::kResizing;
  moved.target = move.target;
  moved.stopping_for = gang_;
  const JobId other = Add({.gpus = 4});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, gang_), WaitReason::kPipelined);
  EXPECT_NE(ReasonOf(decisions, other), WaitReason::kPipelined);
}

TEST_F(CompactionTest, NotIfNoHoleIsLargeEnough) {
  Add({.gpus = 1, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 1, .checkpoints = false, .on = {{1, 1}}});
  EXPECT_THAT(Run().resizes, IsEmpty());
}

TEST_F(CompactionTest, MovesOnlyJobsThatSaveTheirWork) {
  snapshot.Find(first_)->checkpoints = false;
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, second_);
  snapshot.Find(second_)->preemptible = false;
  EXPECT_THAT(Run().resizes, IsEmpty());
}

TEST_F(CompactionTest, AJobIsNotMovedSoonAfterItsLastMove) {
  for (const JobId job : {first_, second_}) snapshot.Find(job)->last_resize = kNow - kMinute;
  EXPECT_THAT(Run().resizes, IsEmpty());
}

TEST_F(CompactionTest, MovesCostLessThanTheGangHasWaited) {
  // 4 GPUs lose 20 s each; 8 GPUs have waited for less than 10 s.
  snapshot.Find(gang_)->waiting_since = kNow - 10 * kSecond;
  EXPECT_THAT(Run().resizes, IsEmpty());
  snapshot.Find(gang_)->waiting_since = kNow - 11 * kSecond;
  EXPECT_EQ(Run().resizes.size(), 1u);
}

TEST_F(CompactionTest, WhoHasWaitedLongerMayCostMore) {
  snapshot.Find(gang_)->waiting_since = kNow - 10 * kSecond;
  const JobId alike = Add({.gpus = 8});
  snapshot.Find(alike)->waiting_since = kNow - 9 * kSecond;
  EXPECT_THAT(Run().resizes, IsEmpty());
  snapshot.Find(alike)->waiting_since = kNow - 11 * kSecond;
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].on_behalf_of, alike);
}

TEST_F(CompactionTest, AJobOfHigherPriorityIsNotMoved) {
  for (const JobId job : {first_, second_}) snapshot.Find(job)->priority = 1;
  EXPECT_THAT(Run().resizes, IsEmpty());
}

TEST_F(CompactionTest, StopsWhatMayBeStoppedAndMovesTheRest) {
  snapshot.jobs.clear();
  AddOld({.gpus = 4, .on = {{0, 1}}});
  const JobId served = AddOld({.gpus = 4, .on = {{0, 1}}});
  snapshot.Find(served)->attained_worker_ms = 300 * kHour;
  Add({.gpus = 4, .checkpoints = false, .on = {{1, 1}}});
  const JobId gang = Add({.gpus = 8});
  snapshot.Find(gang)->waiting_since = kNow - kHour;
  const Decisions decisions = Run();
  EXPECT_EQ(decisions.stops.size() + decisions.resizes.size(), 2u);
  EXPECT_THAT(Stopped(decisions), ElementsAre(served));
}

}  // namespace
}  // namespace renzan::cluster
