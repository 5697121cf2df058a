// Whatever fails in between: no job is lost, started twice, or given room that does not exist, and
// all jobs end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/kubernetes/controller/trouble_testing.h"

namespace renzan::cluster::kubernetes {
namespace {

TEST(KubernetesTrouble, LosesNothing) {
  const auto [first, last] = TestSeeds(99);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Trouble trouble(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, trouble.kinds.Text()));
    trouble.Suffer(170);
    EXPECT_TRUE(trouble.Recover(4000)) << "not all jobs have ended";
    EXPECT_THAT(trouble.Wrong(), ::testing::IsEmpty());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
