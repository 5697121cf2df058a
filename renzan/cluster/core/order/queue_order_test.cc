#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;

class QueueOrderTest : public ScheduleTest {};

TEST_F(QueueOrderTest, HigherPriorityFirstThenEarlierSubmission) {
  Nodes(1);
  const JobId first = Add({.gpus = 4});
  Add({.gpus = 4});
  const JobId urgent = Add({.priority = 1, .gpus = 4});
  EXPECT_THAT(Started(Run()), ElementsAre(urgent, first));
}

TEST_F(QueueOrderTest, QueuesAlternateByShareOfGuaranteedQuota) {
  TwoQueues(4, 12);
  Nodes(1);
  for (int job = 0; job < 4; ++job) Add({.queue = 0, .gpus = 2});
  for (int job = 0; job < 4; ++job) Add({.queue = 1, .gpus = 2});
  // Job 1 uses half of a's quota, job 5 a sixth of b's: after a, b runs until it has caught up.
  EXPECT_THAT(Started(Run()), ElementsAre(1, 5, 6, 7));
}

TEST_F(QueueOrderTest, AnOverdueJobGoesFirst) {
  TwoQueues(8, 0);
  Nodes(1);
  const JobId fresh = Add({.queue = 1, .gpus = 8});
  const JobId old = Add({.queue = 1, .gpus = 8});
  snapshot.queues.push_back({.name = "c"});
  const JobId overdue = Add({.queue = 2, .gpus = 8});
  snapshot.jobs[2].waiting_since = kNow - 2 * 24 * 3'600'000;
  EXPECT_THAT(Started(Run()), ElementsAre(overdue));
  (void)fresh, (void)old;
}

TEST_F(QueueOrderTest, OnlyOneOverdueJobGoesFirst) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 6, .on = {{1, 1}}});
  const JobId fresh = Add({});
  const JobId next = Add({});
  const JobId longest = Add({});
  snapshot.Find(next)->waiting_since = kNow - 25 * kHour;
  snapshot.Find(longest)->waiting_since = kNow - 26 * kHour;
  EXPECT_THAT(Started(Run()), ElementsAre(longest, fresh));
}

TEST_F(QueueOrderTest, AnOverdueJobThatCannotStartGetsTheReservationAndTheNextOneStarts) {
  Nodes(3);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 7, .on = {{1, 1}}});
  Add({.gpus = 8, .checkpoints = false, .on = {{2, 1}}});
  Add({});  // fresh
  const JobId longest = Add({.workers = 2, .gpus = 8});
  const JobId next = Add({});
  snapshot.Find(longest)->waiting_since = kNow - 26 * kHour;
  snapshot.Find(next)->waiting_since = kNow - 25 * kHour;
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, longest);
  EXPECT_THAT(Started(decisions), ElementsAre(next));
}

TEST_F(QueueOrderTest, AJobIsOverdueAfterADayAndFourTimesItsService) {
  Nodes(1);
  const JobId fresh = Add({.gpus = 8});
  const JobId old = Add({.gpus = 8});
  snapshot.Find(old)->waiting_since = kNow - 46 * kHour;
  snapshot.Find(old)->attained_worker_ms = 6 * kHour;
  EXPECT_THAT(Started(Run()), ElementsAre(fresh));
  snapshot.Find(old)->attained_worker_ms = 5 * kHour;
  EXPECT_THAT(Started(Run()), ElementsAre(old));
}

TEST_F(QueueOrderTest, OfJobsThatDoNotSaveTheShorterByPredictionGoFirst) {
  Nodes(1);
  const JobId longer = Add({.gpus = 8, .checkpoints = false});
  const JobId shorter = Add({.gpus = 8, .checkpoints = false});
  snapshot.Find(longer)->run_time = {kHour, 2 * kHour, 3 * kHour, 10 * kHour, 20 * kHour};
  snapshot.Find(shorter)->run_time = {kMinute, kMinute, kHour, kHour, 20 * kHour};
  EXPECT_THAT(Started(Run()), ElementsAre(shorter));
  // The place of a job that saves its work can be corrected later, so it needs no prediction.
  snapshot.Find(longer)->checkpoints = true;
  EXPECT_THAT(Started(Run()), ElementsAre(longer));
}

TEST_F(QueueOrderTest, LessServiceFirstThenEarlierSubmission) {
  Nodes(1);
  const JobId much = Add({.gpus = 8});
  const JobId little = Add({.gpus = 8});
  const JobId none = Add({.gpus = 8});
  snapshot.Find(much)->attained_worker_ms = 5 * kHour;
  snapshot.Find(little)->attained_worker_ms = kHour / 2;
  EXPECT_THAT(Started(Run()), ElementsAre(little));
  snapshot.Find(little)->attained_worker_ms = 40 * kHour;
  snapshot.Find(none)->priority = -1;
  EXPECT_THAT(Started(Run()), ElementsAre(much));
}

// Otherwise the gang would seem to have two nodes, and to need the quota.
TEST_F(QueueOrderTest, AClaimOnQuotaTakesWhatIsFreeBeforeItTakesWhatOthersWouldLeave) {
  TwoQueues(24, 0);
  Nodes(3);
  const JobId borrower =
      Add({.queue = 1, .priority = 3, .gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.queue = 0, .gpus = 2, .checkpoints = false, .on = {{2, 1}}, .preemptible = false});
  Add({.queue = 1, .gpus = 6, .on = {{2, 1}}});
  const JobId small = Add({.queue = 0, .priority = 3, .checkpoints = false, .preemptible = false});
  const JobId gang = Add({.queue = 0, .workers = 2, .gpus = 8});
  const JobId one = Add({.queue = 0, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(small));
  EXPECT_THAT(Stopped(decisions), ElementsAre(borrower));
  EXPECT_EQ(ReasonOf(decisions, one), WaitReason::kPipelined);
  EXPECT_EQ(ReasonOf(decisions, gang), WaitReason::kResources);
}

}  // namespace
}  // namespace renzan::cluster
