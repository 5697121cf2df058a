#include "renzan/base/process/run_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/descriptor.h"

namespace renzan {
namespace {

using Outcome = ProgramResult::Outcome;
using ::testing::EndsWith;
using ::testing::HasSubstr;

ProgramResult RunShell(const std::string& script, const ProgramLimits& limits = {},
                       const std::stop_token& stop = {}) {
  return std::get<ProgramResult>(RunProgram(
      {.argv = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}}, limits, stop));
}

TEST(RunProgram, TakesWhatItWrites) {
  const ProgramResult result = RunShell("cat; echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.outcome, Outcome::kEnded);
  EXPECT_EQ(result.end.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.last_errors, "err\n");
}

TEST(RunProgram, CopiesErrorsToOurs) {
  testing::internal::CaptureStderr();
  const ProgramResult result = RunShell("seq 100000 >&2; echo last >&2");
  const std::string copied = testing::internal::GetCapturedStderr();
  EXPECT_THAT(copied, HasSubstr("\n77777\n"));
  EXPECT_THAT(result.last_errors, EndsWith("100000\nlast\n"));
  EXPECT_LE(result.last_errors.size(), 4096u);
}

TEST(RunProgram, CanLeaveErrorsAlone) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunShell("echo err >&2", {.copy_errors = false}).last_errors, "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "err\n");
}

TEST(RunProgram, ReadsFromTheInputThatItIsGiven) {
  const TemporaryDirectory directory;
  WriteFileAtomically(directory / "input", "typed");
  const Descriptor input(open((directory / "input").c_str(), O_RDONLY | O_CLOEXEC));
  const auto result = RunProgram({.argv = {"cat"},
                                  .environment = {"PATH=/usr/bin:/bin"},
                                  .stdin_fd = input.get(),
                                  .leads = ChildOptions::Leads::kNothing},
                                 {});
  EXPECT_EQ(std::get<ProgramResult>(result).output, "typed");
}

TEST(RunProgram, SaysWhyItCannotBeStarted) {
  const auto result = RunProgram({.argv = {"/nowhere/program"}}, {});
  ASSERT_TRUE(std::holds_alternative<StartError>(result));
  EXPECT_EQ(std::get<StartError>(result).error, ENOENT);
}

TEST(RunProgram, KillsTheGroupOfOneThatTakesTooLong) {
  const TemporaryDirectory directory;
  const ProgramResult result = RunShell(
      "(sleep 1; touch " + (directory / "late") + ") & echo begun; wait", {.seconds = 0.3});
  EXPECT_EQ(result.outcome, Outcome::kTimeLimit);
  EXPECT_EQ(result.end.signal, SIGKILL);
  EXPECT_EQ(result.output, "begun\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(std::filesystem::exists(directory / "late"));
}

TEST(RunProgram, KillsOneThatWritesTooMuch) {
  EXPECT_EQ(RunShell("yes", {.output_bytes = 10000}).outcome, Outcome::kOutputLimit);
  EXPECT_EQ(RunShell("seq 3", {.output_bytes = 5}).outcome, Outcome::kOutputLimit);
  EXPECT_EQ(RunShell("seq 3", {.output_bytes = 6}).outcome, Outcome::kEnded);
}

TEST(RunProgram, AStopEndsIt) {
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  EXPECT_EQ(RunShell("sleep 60", {}, stop.get_token()).outcome, Outcome::kStopped);
  stopper.join();
}

TEST(RunProgram, DoesNotWaitForWhatAProgramLeavesBehind) {
  const double begun = SystemClock().MonotonicSeconds();
  EXPECT_EQ(RunShell("sleep 20 & echo done").output, "done\n");
  EXPECT_LT(SystemClock().MonotonicSeconds(), begun + 10);
}

}  // namespace
}  // namespace renzan
