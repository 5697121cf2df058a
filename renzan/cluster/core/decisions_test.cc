#include "renzan/cluster/core/decisions.h"

#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

TEST(Decisions, TextOfAResizeSaysWhy) {
  Snapshot snapshot;
  snapshot.nodes = {{.name = "own-0"}, {.name = "own-1"}, {.name = "own-2"}};
  snapshot.jobs = {{.id = 4, .placement = {{0, 1}, {1, 1}}}};
  EXPECT_EQ(TextOf(Resize{4, {{0, 1}, {1, 2}}}, snapshot), "from 2 workers to 3");
  EXPECT_EQ(TextOf(Resize{4, {{0, 1}}, 7}, snapshot), "from 2 workers to 1 for job 7");
  EXPECT_EQ(TextOf(Resize{4, {{2, 2}}, 7}, snapshot), "moved to other nodes for job 7");
  snapshot.nodes[1].state = NodeState::kDraining;
  EXPECT_EQ(TextOf(Resize{4, {{0, 1}, {2, 1}}}, snapshot), "moved off own-1, which is leaving");
  snapshot.nodes[0].state = NodeState::kDraining;
  EXPECT_EQ(TextOf(Resize{4, {{2, 1}}}, snapshot),
            "moved off own-0, own-1, which are leaving, from 2 workers to 1");
}

TEST(Decisions, TextOfAStopSaysForWhomAndByWhom) {
  EXPECT_EQ(TextOf(Stop{4, StopReason::kPreempted, 7}), "preempted for job 7");
  EXPECT_EQ(TextOf(Stop{4, StopReason::kRequested, 0, "ann"}), "requested by ann");
}

}  // namespace
}  // namespace renzan::cluster
