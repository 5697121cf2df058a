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
  snapshot.queues = {{.name = "a"}, {.name = "b"}};
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 6, .on = {{1, 1}}});
  const JobId oldest = Add({});
  const JobId next = Add({});
  for (const JobId job : {oldest, next}) snapshot.Find(job)->waiting_since = kNow - 25 * 3'600'000;
  const JobId of_b = Add({.queue = 1});
  EXPECT_THAT(Started(Run()), ElementsAre(oldest, of_b));
}

TEST_F(QueueOrderTest, AnOverdueJobThatCannotStartGetsTheReservation) {
  Nodes(2);
  snapshot.queues = {{.name = "a"}, {.name = "b"}};
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 7, .on = {{1, 1}}});
  const JobId oldest = Add({.workers = 2, .gpus = 8});
  const JobId next = Add({});
  for (const JobId job : {oldest, next}) snapshot.Find(job)->waiting_since = kNow - 25 * 3'600'000;
  const JobId of_b = Add({.queue = 1});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, oldest);
  EXPECT_THAT(Started(decisions), ElementsAre(of_b));
}

}  // namespace
}  // namespace renzan::cluster
