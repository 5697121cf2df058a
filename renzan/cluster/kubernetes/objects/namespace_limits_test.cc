#include "renzan/cluster/kubernetes/objects/namespace_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;

TEST(NamespaceLimits, SayWhatIsForbiddenAndWhoMayChangeThat) {
  NamespaceLimits limits{.max_pending_jobs = 2, .not_preemptible = false};
  spec::JobSpec job;
  EXPECT_EQ(WhyForbidden(limits, "ads", job, 1), "");
  EXPECT_THAT(WhyForbidden(limits, "ads", job, 2), HasSubstr("has 2 pending jobs"));
  job.preemptible = false;
  EXPECT_THAT(WhyForbidden(limits, "ads", job, 0), HasSubstr("preemptible: false"));
  job.preemptible = true;
  job.grand_challenge = true;
  EXPECT_THAT(WhyForbidden(limits, "ads", job, 0), HasSubstr("grandChallenge"));
  limits.grand_challenge = true;
  EXPECT_EQ(WhyForbidden(limits, "ads", job, 0), "");
}

TEST(NamespaceLimits, DoNotBindExemptNamespaces) {
  const NamespaceLimits limits{
      .max_priority = 0, .max_pending_jobs = 0, .not_preemptible = false, .exempt = {"operators"}};
  spec::JobSpec job;
  job.priority = 1000;
  job.preemptible = false;
  job.grand_challenge = true;
  EXPECT_EQ(WhyForbidden(limits, "operators", job, 100), "");
  EXPECT_NE(WhyForbidden(limits, "ads", job, 100), "");
  EXPECT_TRUE(SubmitterOf(limits, "operators").administrator);
  EXPECT_FALSE(SubmitterOf(limits, "ads").administrator);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
