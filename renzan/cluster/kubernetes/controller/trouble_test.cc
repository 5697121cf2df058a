// Whatever fails in between: no job is lost, started twice, or given room that does not exist, and
// all jobs end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/kubernetes/controller/trouble_testing.h"

namespace renzan::cluster::kubernetes {
namespace {

void LoseNothing(uint64_t seed) {
  Trouble trouble(seed);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, trouble.kinds.Text()));
  trouble.Suffer(170);
  EXPECT_TRUE(trouble.Recover(4000)) << "not all jobs have ended";
  EXPECT_THAT(trouble.Wrong(), ::testing::IsEmpty());
}

TEST(KubernetesTrouble, LosesNothing) {
  const auto [first, last] = TestSeeds(99);
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed)
    LoseNothing(seed);
}

// Seeds that found something.
TEST(KubernetesTrouble, LosesNothingAgain) {
  // A job that ended in the second of its stop ran again.
  LoseNothing(1009);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
