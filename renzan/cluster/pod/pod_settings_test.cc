#include "renzan/cluster/pod/pod_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::pod {
namespace {

TEST(PodSettings, AreThoseOfTheController) {
  const PodSettings settings =
      ReadPodSettings({"RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=towers-0", "RENZAN_GRACE_SECONDS=2.5",
                       "RENZAN_RUN_DIR=/data/run", "RENZAN_POD_INFO=/info", "RANKING=9",
                       "RENZAN_ATTEMPT=4", "RENZAN_UPLOAD_TO=s3://b/p", "RENZAN_ARTIFACTS=out"});
  EXPECT_EQ(settings.rank, 3);
  EXPECT_EQ(settings.world_size, 8);
  EXPECT_EQ(settings.master_addr, "towers-0");
  EXPECT_EQ(settings.grace_seconds, 2.5);
  EXPECT_EQ(settings.run_dir, "/data/run");
  EXPECT_EQ(settings.pod_info, "/info");
  EXPECT_EQ(settings.attempt, 4);
  EXPECT_EQ(settings.upload_to, "s3://b/p");
  EXPECT_EQ(settings.artifacts, "out");
}

TEST(PodSettings, HaveDefaults) {
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{}, {"RANK=", "WORLD_SIZE=", "RENZAN_POD_INFO="}}) {
    const PodSettings settings = ReadPodSettings(environment);
    EXPECT_EQ(settings.rank, 0);
    EXPECT_EQ(settings.world_size, 1);
    EXPECT_EQ(settings.master_addr, "");
    EXPECT_FALSE(settings.grace_seconds);
    EXPECT_EQ(settings.pod_info, "/etc/renzan/pod");
    EXPECT_EQ(TerminationLogOf(environment), "/dev/termination-log");
  }
  EXPECT_EQ(TerminationLogOf({"RENZAN_TERMINATION_LOG=/words"}), "/words");
}

TEST(PodSettings, NumbersThatAreNoneAreErrors) {
  for (const char* entry : {"RANK=first", "RANK=-1", "RANK=1x", "WORLD_SIZE=0", "WORLD_SIZE=2.5",
                            "WORLD_SIZE=99999999999", "RENZAN_GRACE_SECONDS=-1",
                            "RENZAN_GRACE_SECONDS=inf", "RENZAN_GRACE_SECONDS=30s"}) {
    try {
      ReadPodSettings({entry});
      ADD_FAILURE() << entry;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(),
                  testing::HasSubstr(std::string(entry).substr(0, std::string(entry).find('='))));
    }
  }
}

TEST(PodSettings, AVariableIsReplaced) {
  std::vector<std::string> environment = {"A=1", "AB=2", "A=3"};
  SetVariable(environment, "A", "4");
  EXPECT_THAT(environment, testing::ElementsAre("AB=2", "A=4"));
}

}  // namespace
}  // namespace renzan::cluster::pod
