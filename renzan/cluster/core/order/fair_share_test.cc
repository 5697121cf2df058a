#include "renzan/cluster/core/order/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr double kGpuHour = 3600;

class FairShareTest : public ScheduleTest {
 protected:
  FairShareTest() {
    snapshot.users.push_back({.name = "eve"});
    snapshot.queues[0].fair_share = {.half_life = 24 * kHour};
  }

  void Used(double ann, double bob, int queue = 0) {
    snapshot.queues[queue].fair_share->used = {{0, ann * kGpuHour}, {1, bob * kGpuHour}};
  }

  int LevelOf(JobId job) const { return Ranks(snapshot, {}).Of(*snapshot.Find(job)).use.level; }

  // A job that fills node 0, with 5 hours of service; stopping it costs a minute.
  JobId AddServed(int user) {
    const JobId id = Add({.gpus = 8, .on = {{0, 1}}, .ran_ms = kHour, .user = user});
    snapshot.Find(id)->attained_worker_ms = 4 * kHour;
    return id;
  }
};

TEST_F(FairShareTest, WhoHasUsedLessGoesFirst) {
  Nodes(1);
  const JobId anns = Add({.gpus = 8, .user = 0});
  const JobId bobs = Add({.gpus = 8, .user = 1});
  Used(1, 1);
  EXPECT_THAT(Started(Run()), ElementsAre(anns));
  Used(40, 12);
  EXPECT_THAT(Started(Run()), ElementsAre(bobs));
  snapshot.queues[0].fair_share.reset();
  EXPECT_THAT(Started(Run()), ElementsAre(anns));
}

TEST_F(FairShareTest, PriorityAndOverdueJobsGoBeforeIt) {
  Nodes(1);
  const JobId anns = Add({.gpus = 8, .user = 0});
  const JobId bobs = Add({.gpus = 8, .user = 1});
  Used(40, 0);
  EXPECT_THAT(Started(Run()), ElementsAre(bobs));
  snapshot.Find(anns)->waiting_since = kNow - 25 * kHour;
  EXPECT_THAT(Started(Run()), ElementsAre(anns));
  snapshot.Find(anns)->waiting_since = kNow;
  snapshot.Find(anns)->priority = 1;
  EXPECT_THAT(Started(Run()), ElementsAre(anns));
}

TEST_F(FairShareTest, ItGoesBeforeService) {
  Nodes(1);
  Add({.gpus = 8, .user = 0});
  const JobId served = Add({.gpus = 8, .user = 1});
  snapshot.Find(served)->attained_worker_ms = 10 * kHour;
  Used(40, 12);
  EXPECT_THAT(Started(Run()), ElementsAre(served));
}

TEST_F(FairShareTest, NobodyIsStoppedForIt) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}, .ran_ms = kHour / 2, .user = 0});
  Add({.gpus = 8, .user = 1});
  Used(1000, 0);
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(FairShareTest, AJobIsNotStoppedForLessServiceOfAUserWhoHasUsedMore) {
  Nodes(1);
  const JobId served = AddServed(/*user=*/1);
  Add({.gpus = 8, .user = 0});
  Used(30, 12);
  EXPECT_THAT(Run().stops, IsEmpty());
  Used(13, 12);
  EXPECT_THAT(Stopped(Run()), ElementsAre(served));
}

TEST_F(FairShareTest, ALevelIsHalfOfTheNext) {
  const JobId anns = Add({.user = 0}), bobs = Add({.user = 1}), eves = Add({.user = 2});
  const auto levels = [&] { return std::vector{LevelOf(anns), LevelOf(bobs), LevelOf(eves)}; };
  EXPECT_THAT(levels(), ElementsAre(1, 1, 1));
  Used(8, 8);
  EXPECT_THAT(levels(), ElementsAre(16, 16, 1));
  Used(8, 4.001);
  EXPECT_THAT(levels(), ElementsAre(16, 16, 1));
  Used(8, 4);
  EXPECT_THAT(levels(), ElementsAre(16, 15, 1));
  Used(1, 9);
  EXPECT_THAT(levels(), ElementsAre(13, 16, 1));
  Used(1, 1e9);
  EXPECT_THAT(levels(), ElementsAre(1, 16, 1));
}

TEST_F(FairShareTest, UsersWithoutJobsThereDoNotCount) {
  const JobId anns = Add({.user = 0});
  Add({.user = 2});
  Used(1, 1e9);
  EXPECT_EQ(LevelOf(anns), 16);
}

// Whenever it is ann's turn, it is bob's; and the other queue's turns stay where they were.
TEST_F(FairShareTest, JobsOfAQueueExchangeTheirTurns) {
  snapshot.queues.push_back({.name = "other"});
  Nodes(4);
  const JobId anns = Add({.gpus = 8, .user = 0});
  const JobId others = Add({.queue = 1, .gpus = 8, .user = 2});
  const JobId next = Add({.queue = 1, .gpus = 8, .user = 2});
  const JobId bobs = Add({.gpus = 8, .user = 1});
  EXPECT_THAT(Started(Run()), ElementsAre(anns, others, next, bobs));
  Used(1000, 0);
  EXPECT_THAT(Started(Run()), ElementsAre(bobs, others, next, anns));
  snapshot.Find(anns)->attained_worker_ms = 10 * kHour;
  EXPECT_THAT(Started(Run()), ElementsAre(others, next, bobs, anns));
  snapshot.queues[1].guaranteed[kGpu] = 8;
  EXPECT_THAT(Started(Run()), ElementsAre(others, bobs, next, anns));
}

TEST_F(FairShareTest, TheGuaranteedQuotaGoesToThoseWhoHaveUsedLess) {
  snapshot.queues[0].guaranteed[kGpu] = 4;
  snapshot.queues.push_back({.name = "other", .guaranteed = {.amount = {0, 0, 12}}});
  Nodes(1);
  const JobId anns = Add({.gpus = 4, .on = {{0, 1}}, .user = 0});
  const JobId bobs = Add({.gpus = 4, .on = {{0, 1}}, .user = 1});
  Add({.queue = 1, .gpus = 4, .user = 2});
  Used(40, 12);
  EXPECT_THAT(Stopped(Run()), ElementsAre(anns));
  Used(12, 40);
  EXPECT_THAT(Stopped(Run()), ElementsAre(bobs));
}

TEST_F(FairShareTest, UseDecays) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}, .user = 2});
  Used(40, 12);
  AdvanceTo(kNow + 24 * kHour, snapshot);
  EXPECT_EQ(snapshot.now, kNow + 24 * kHour);
  const FairShare& its = *snapshot.queues[0].fair_share;
  EXPECT_DOUBLE_EQ(UsedBy(its, 0), 20 * kGpuHour);
  EXPECT_DOUBLE_EQ(UsedBy(its, 1), 6 * kGpuHour);
  // 8 GPUs for a day, of which the first hours count hardly more than half.
  EXPECT_NEAR(UsedBy(its, 2) / kGpuHour, 8 * 24 * 0.72, 0.3);
  const double after_a_day = UsedBy(its, 2);
  AdvanceTo(kNow + 1000 * 24 * kHour, snapshot);
  EXPECT_NEAR(UsedBy(its, 2), 2 * after_a_day, 1);
}

TEST_F(FairShareTest, StepsDoNotMatter) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}, .user = 1});
  Used(40, 12);
  Snapshot at_once = snapshot;
  AdvanceTo(kNow + 50 * kHour, at_once);
  for (int step = 0; step < 500; ++step) AdvanceTo(snapshot.now + kHour / 10, snapshot);
  EXPECT_NEAR(UsedBy(*snapshot.queues[0].fair_share, 1), UsedBy(*at_once.queues[0].fair_share, 1),
              1e-3);
}

TEST_F(FairShareTest, CpuTimeCountsWhereThereAreNoGpus) {
  Nodes(1, /*gpus=*/0);
  Add({.gpus = 0, .on = {{0, 1}}, .user = 2});
  AdvanceTo(kNow + kMinute, snapshot);
  EXPECT_NEAR(UsedBy(*snapshot.queues[0].fair_share, 2), 60, 0.1);  // of one core
}

// The next cycle comes when the level changes, not much sooner and never much later.
TEST_F(FairShareTest, LooksAgainWhenALevelChanges) {
  Nodes(1);
  const JobId bobs = Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}, .user = 1});
  Add({.gpus = 8, .user = 0});
  Used(400, 100.5);
  int looks = 0;
  const int before = LevelOf(bobs);
  while (LevelOf(bobs) == before) {
    const TimeMs next = Run().look_again;
    ASSERT_LT(next, kNow + 48 * kHour);
    // Nothing changes before.
    Snapshot shortly_before = snapshot;
    AdvanceTo(next - kSecond - 1, shortly_before);
    if (shortly_before.now > snapshot.now) {
      EXPECT_EQ(Ranks(shortly_before, {}).Of(*shortly_before.Find(bobs)).use.level, before);
    }
    AdvanceTo(next, snapshot);
    ASSERT_LT(++looks, 20);
  }
  // 100.5 + 8 n = 200 in a time that passes ever more slowly.
  EXPECT_GT(snapshot.now - kNow, 10 * kHour);
  EXPECT_LT(snapshot.now - kNow, 13 * kHour);
}

TEST_F(FairShareTest, TermsNameItOnlyWhereItIsOn) {
  const JobId job = Add({});
  EXPECT_THAT(Ranks(snapshot, {}).Of(*snapshot.Find(job)).Terms(),
              ElementsAre(Pair(testing::StrEq("priority"), 0), Pair(testing::StrEq("use_level"), 1),
                          Pair(testing::StrEq("level"), 0)));
  snapshot.queues[0].fair_share.reset();
  EXPECT_THAT(Ranks(snapshot, {}).Of(*snapshot.Find(job)).Terms(),
              ElementsAre(Pair(testing::StrEq("priority"), 0), Pair(testing::StrEq("level"), 0)));
}

}  // namespace
}  // namespace renzan::cluster
