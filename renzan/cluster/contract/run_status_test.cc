#include "renzan/cluster/contract/run_status.h"

#include <gmock/gmock.h>

namespace renzan::cluster {
namespace {

constexpr TimeMs kNow = 1'800'000'000'000;

TEST(RunStatus, ReadsTheFieldsOfTheLaunchContract) {
  const auto status = ParseRunStatus(
      R"({"state": "running", "step": 100, "steps": 1000, "samples_per_second": 5e4,
          "eta_seconds": 18.5, "last_checkpoint": {"step": 90, "time": 1790000000.5},
          "working_since": 1789999000, "updated": 1790000005.0})",
      kNow);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, "running");
  EXPECT_EQ(status->step, 100);
  EXPECT_EQ(status->steps, 1000);
  EXPECT_EQ(status->samples_per_second, 5e4);
  EXPECT_EQ(status->eta_seconds, 18.5);
  EXPECT_EQ(status->last_checkpoint, 1'790'000'000'500);
  EXPECT_EQ(status->working_since, 1'789'999'000'000);
  EXPECT_EQ(status->updated, 1'790'000'005'000);
}

TEST(RunStatus, AllFieldsAreOptional) {
  for (const char* text :
       {"{}", R"({"state": 3, "last_checkpoint": null, "working_since": null})"}) {
    const auto status = ParseRunStatus(text, kNow);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->step, 0);
    EXPECT_FALSE(status->eta_seconds);
    EXPECT_FALSE(status->last_checkpoint);
    EXPECT_FALSE(status->working_since);
    EXPECT_EQ(status->updated, kNow);
  }
}

TEST(RunStatus, IgnoresTextThatIsNotAStatus) {
  std::string deep = "0";
  for (int level = 0; level < 10'000; ++level) deep = "[" + deep + "]";
  for (const std::string& text : {std::string(), std::string("{"), std::string("[1]"),
                                  std::string("\xff"), "{\"step\": " + deep + "}"})
    EXPECT_FALSE(ParseRunStatus(text, kNow)) << text.substr(0, 20);
}

TEST(RunStatus, IgnoresInvalidValuesAndTakesTheFutureForNow) {
  const auto status = ParseRunStatus(
      R"({"step": -4, "steps": "many", "samples_per_second": 1e16, "eta_seconds": 1e18,
          "last_checkpoint": {"time": 1e11}, "working_since": true, "updated": 1e11})",
      kNow);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->step, 0);
  EXPECT_EQ(status->steps, 0);
  EXPECT_FALSE(status->eta_seconds);
  EXPECT_EQ(status->last_checkpoint, kNow);
  EXPECT_FALSE(status->working_since);
  EXPECT_EQ(status->updated, kNow);
}

}  // namespace
}  // namespace renzan::cluster
