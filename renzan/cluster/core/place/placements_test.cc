#include "renzan/cluster/core/place/placements.h"

#include <gmock/gmock.h>

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Placements, NodeByNode) {
  const Placement a = {{0, 2}, {3, 1}, {4, 5}}, b = {{1, 1}, {3, 2}, {4, 1}, {9, 1}};
  EXPECT_THAT(Sum(a, b),
              ElementsAre(Placed{0, 2}, Placed{1, 1}, Placed{3, 3}, Placed{4, 6}, Placed{9, 1}));
  EXPECT_THAT(Union(a, b),
              ElementsAre(Placed{0, 2}, Placed{1, 1}, Placed{3, 2}, Placed{4, 5}, Placed{9, 1}));
  EXPECT_THAT(Difference(a, b), ElementsAre(Placed{0, 2}, Placed{4, 4}));
  EXPECT_THAT(Difference(a, a), IsEmpty());
  EXPECT_EQ(Sum(a, {}), a);
  EXPECT_EQ(Union({}, b), b);
}

TEST(Placements, AResizingJobHoldsBoth) {
  Job job{.placement = {{0, 2}}, .target = {{0, 1}, {1, 1}}};
  EXPECT_EQ(HeldBy(job), job.placement);
  job.state = JobState::kResizing;
  EXPECT_THAT(HeldBy(job), ElementsAre(Placed{0, 2}, Placed{1, 1}));
}

}  // namespace
}  // namespace renzan::cluster
