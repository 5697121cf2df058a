#include "renzan/cluster/pod/checkpoint_requests.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>

#include "renzan/base/file/file.h"
#include "renzan/cluster/pod/pod_testing.h"

namespace renzan::cluster::pod {
namespace {

class CheckpointRequestsTest : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string volume_ = directory_ / "pod";
};

TEST_F(CheckpointRequestsTest, AreChangesOfTheAnnotation) {
  WriteAnnotation(volume_, "1");
  CheckpointRequests requests(volume_);
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "1");  // another annotation has changed
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "2");
  EXPECT_TRUE(requests.Take());
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "");
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "2\n");
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "1");
  EXPECT_TRUE(requests.Take());
}

TEST_F(CheckpointRequestsTest, TheVolumeMayAppearLater) {
  CheckpointRequests requests(volume_);
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "");
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "1");
  EXPECT_TRUE(requests.Take());
  std::filesystem::remove_all(volume_);
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "1");
  EXPECT_FALSE(requests.Take());
  WriteAnnotation(volume_, "2");
  EXPECT_TRUE(requests.Take());
}

TEST_F(CheckpointRequestsTest, AReplacedVolumeWakesThePoll) {
  WriteAnnotation(volume_, "1");
  CheckpointRequests requests(volume_);
  ASSERT_GE(requests.fd(), 0);
  pollfd changed = {requests.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&changed, 1, 0), 0);
  WriteAnnotation(volume_, "2");
  EXPECT_EQ(poll(&changed, 1, 60'000), 1);
  EXPECT_TRUE(requests.Take());
  EXPECT_EQ(poll(&changed, 1, 0), 0);
}

}  // namespace
}  // namespace renzan::cluster::pod
