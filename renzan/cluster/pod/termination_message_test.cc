#include "renzan/cluster/pod/termination_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "renzan/base/file/file.h"

namespace renzan::cluster::pod {
namespace {

using testing::EndsWith;

TEST(TerminationMessage, IsOneLineOfJson) {
  EXPECT_EQ(TerminationMessage({.exit_code = 3, .message = "error: no 'data'"}),
            "{\"exit_code\":3,\"message\":\"error: no 'data'\"}\n");
  EXPECT_EQ(TerminationMessage({.exit_code = 137, .signal = SIGKILL, .message = "a\nb\x01"}),
            "{\"exit_code\":137,\"signal\":\"SIGKILL\",\"message\":\"a\\\\nb\\\\x01\"}\n");
}

TEST(TerminationMessage, HasNoColours) {
  EXPECT_EQ(TerminationMessage({.message = "\x1b[1;31merror:\x1b[0m no\x1b["}),
            "{\"exit_code\":0,\"message\":\"error: no\"}\n");
}

TEST(TerminationMessage, IsNeverTooLong) {
  for (const char* piece : {"x", "\"", "\xff", "\\", "ü", "€", "😀", "\n"}) {
    std::string message;
    for (size_t size = 0; size < 20'000; size += 397) {
      while (message.size() < size) message += piece;
      const std::string line = TerminationMessage({.exit_code = 1, .message = message});
      ASSERT_LE(line.size(), 4096U) << piece << " " << size;
      const auto json = nlohmann::json::parse(line);  // whole characters
      const std::string kept = json.at("message");
      if (kept.ends_with("...")) {
        EXPECT_GT(line.size(), 4080U) << piece;
      }
    }
    EXPECT_THAT(TerminationMessage({.message = message}), EndsWith("...\"}\n"));
  }
}

TEST(TerminationMessage, IsWrittenOnlyWhereOneIsWanted) {
  const TemporaryDirectory directory;
  WriteTerminationMessage(directory / "absent", {.message = "x"});
  EXPECT_FALSE(FileExists(directory / "absent"));
  WriteTerminationMessage(directory.path(), {.message = "x"});
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  WriteTerminationMessage(directory / "pipe", {.message = "x"});
  WriteFileAtomically(directory / "log", std::string(5000, 'y'));
  WriteTerminationMessage(directory / "log", {.message = "x"});
  EXPECT_EQ(ReadFile(directory / "log"), "{\"exit_code\":0,\"message\":\"x\"}\n");
}

TEST(DescribeContainerEnd, IsTheStatusAndForFailuresTheLastLine) {
  const std::string status = R"({"state": "failed", "step": 7, "steps": 100})";
  const std::string stopped = R"({"state": "stopped", "step": 7, "steps": 100})";
  EXPECT_EQ(DescribeContainerEnd({.exit_code = 69}, status, "error: worker 2 died"),
            "failed at step 7 of 100: error: worker 2 died");
  EXPECT_EQ(DescribeContainerEnd({.exit_code = 75}, stopped, "resumes"),
            "stopped at step 7 of 100");
  EXPECT_EQ(DescribeContainerEnd({.exit_code = 0}, stopped, "words"), "stopped at step 7 of 100");
  EXPECT_EQ(DescribeContainerEnd({.exit_code = 75}, std::nullopt, "saved"), "saved");
  EXPECT_EQ(DescribeContainerEnd({.signal = SIGKILL}, std::nullopt, "last"), "last");
  EXPECT_EQ(DescribeContainerEnd({.signal = SIGKILL}, std::nullopt, ""),
            "was killed by signal 9 (Killed)");
  EXPECT_EQ(DescribeContainerEnd({.exit_code = 0}, std::nullopt, "words"),
            "ended with exit status 0");
  for (const char* invalid : {"", "{", "[]", "{}", R"({"state": 7})"})
    EXPECT_EQ(DescribeContainerEnd({.exit_code = 1}, invalid, "last"), "last") << invalid;
}

}  // namespace
}  // namespace renzan::cluster::pod
