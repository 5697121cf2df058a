#include "renzan/cluster/spec/job_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

constexpr const char* kYaml = "command: [train]\npriority: 3\nretries: 2\n";

std::string ErrorOfChange(const JobChange& change) {
  try {
    WithChange(kYaml, "job 7", change);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "";
}

TEST(JobChange, ChangesOnlyWhatItNames) {
  const JobSpec before = ReadJobSpec(kYaml, "job 7");
  const JobSpec after = WithChange(kYaml, "job 7", {.priority = "-5", .timeout = "90m"});
  EXPECT_EQ(after.priority, -5);
  EXPECT_EQ(after.queue, before.queue);
  EXPECT_EQ(after.timeout_ms(), 90 * 60'000);
  EXPECT_EQ(after.retries, 2);
  EXPECT_EQ(DifferenceText(before, after), "priority 3 -> -5, timeout 0s -> 90m");
  const JobSpec moved = WithChange(kYaml, "job 7", {.queue = "vision"});
  EXPECT_EQ(DifferenceText(before, moved), "queue default -> vision");
}

TEST(JobChange, TheSameTimeInOtherUnitsIsNoDifference) {
  const JobSpec before = WithChange(kYaml, "job 7", {.timeout = "120m"});
  EXPECT_EQ(DifferenceText(before, WithChange(kYaml, "job 7", {.timeout = "2h"})), "");
  EXPECT_EQ(DifferenceText(before, before), "");
}

TEST(JobChange, RefusesWhatASpecificationCouldNotHave) {
  EXPECT_THAT(ErrorOfChange({.priority = "high"}), ::testing::HasSubstr("priority"));
  EXPECT_THAT(ErrorOfChange({.priority = "1000001"}), ::testing::HasSubstr("priority"));
  EXPECT_THAT(ErrorOfChange({.queue = "a b"}), ::testing::HasSubstr("queue"));
  EXPECT_THAT(ErrorOfChange({.timeout = "soon"}), ::testing::HasSubstr("timeout"));
  EXPECT_EQ(ErrorOfChange({.timeout = "0s"}), "");
}

}  // namespace
}  // namespace renzan::cluster::spec
