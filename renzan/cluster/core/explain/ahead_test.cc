#include "renzan/cluster/core/explain/ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

class AheadTest : public ScheduleTest {};

TEST_F(AheadTest, SaysWhoGoesFirstByFairShare) {
  Nodes(1);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId anns = Add({.gpus = 8, .user = 0});
  EXPECT_EQ(Explain(snapshot, anns).ahead, "");
  const JobId bobs = Add({.gpus = 8, .user = 1});
  EXPECT_EQ(Explain(snapshot, anns).ahead, "");
  snapshot.queues[0].fair_share = {.half_life = kHour, .used = {{0, 40 * 3600.}, {1, 12.6 * 3600}}};
  EXPECT_EQ(Explain(snapshot, anns).ahead,
            "job 3 of bob, who has used 12.6 GPU hours of queue default lately, and ann 40");
  EXPECT_EQ(Explain(snapshot, bobs).ahead, "");
  Add({.gpus = 8, .user = 1});
  EXPECT_THAT(Explain(snapshot, anns).ahead, testing::EndsWith("and ann 40; and 1 more job"));
  // Nor those that go first, or cannot start, for other reasons.
  snapshot.Find(bobs)->priority = 1;
  snapshot.jobs.back().held = "because";
  EXPECT_EQ(Explain(snapshot, anns).ahead, "");
}

}  // namespace
}  // namespace renzan::cluster
