#include "renzan/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <vector>

namespace renzan {
namespace {

using testing::ElementsAre;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

std::vector<std::string>& Received() {
  static std::vector<std::string> received;
  return received;
}

TEST(Log, OtherCopiesOfTheModuleMayLogInThisProcess) {
  LogInfo("makes the logger");
  EXPECT_EQ(spdlog::get("renzan"), nullptr);  // two of one name cannot be registered
}

TEST(Log, ALibraryLogsThroughItsProgram) {
  LogThrough({.message =
                  [](LogLevel level, const std::string& message) {
                    Received().push_back(fmt::format("{} {}", static_cast<int>(level), message));
                  },
              .set_prefix = [](const std::string& prefix) { Received().push_back(prefix); },
              .with_times = [] { Received().push_back("with times"); }});
  CaptureStderr();
  SetLogPrefix("pod-run: ");
  LogWithTimes();
  LogWarning("job {} ended", 3);
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_THAT(Received(), ElementsAre("pod-run: ", "with times", "2 job 3 ended"));

  LogThrough({.message = nullptr, .set_prefix = nullptr, .with_times = nullptr});
  CaptureStderr();
  LogWarning("job {} ended", 4);
  EXPECT_EQ(GetCapturedStderr(), "warning: job 4 ended\n");
}

TEST(LogDeathTest, WithTimes) {
  EXPECT_EXIT(
      {
        LogWithTimes();
        LogError("no disk");
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z error: no disk\n$");
}

}  // namespace
}  // namespace renzan
