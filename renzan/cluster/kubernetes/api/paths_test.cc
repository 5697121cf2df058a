#include "renzan/cluster/kubernetes/api/paths.h"

#include <gtest/gtest.h>

namespace renzan::cluster::kubernetes {
namespace {

const Kind kPod{"", "v1", "pods", "Pod"};
const Kind kJob{"batch", "v1", "jobs", "Job"};

TEST(PathsTest, CoreAndNamedGroups) {
  EXPECT_EQ(CollectionPath(kPod, "a"), "/api/v1/namespaces/a/pods");
  EXPECT_EQ(CollectionPath(kPod, ""), "/api/v1/pods");
  EXPECT_EQ(ObjectPath(kJob, "a", "b", "status"), "/apis/batch/v1/namespaces/a/jobs/b/status");
  EXPECT_EQ(ApiVersion(kPod), "v1");
  EXPECT_EQ(ApiVersion(kJob), "batch/v1");
}

TEST(PathsTest, NamesCannotLeaveTheirPlace) {
  EXPECT_EQ(ObjectPath(kPod, "a", "../b?c"), "/api/v1/namespaces/a/pods/..%2Fb%3Fc");
  EXPECT_EQ(EscapeUrl("app in (a,b)"), "app%20in%20%28a%2Cb%29");
}

TEST(PathsDeathTest, AnObjectWithoutANameIsNotTheCollection) {
  EXPECT_EXIT(ObjectPath(kPod, "a", ""), testing::ExitedWithCode(70), "without its name");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
