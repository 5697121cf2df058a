// Jobs that remove their attempt's directory, with real supervisors and workers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

// Until then, the supervisor writes files there itself.
constexpr const char* kOnceStarted =
    "until [ -e \"$RENZAN_ATTEMPT_DIR/started.json\" ]; do sleep 0.01; done; ";

// A job may remove it if it runs as the daemon's user.
TEST(AttemptDirectory, IsPutBack) {
  TestAttempt attempt("while ! [ -e go ]; do sleep 0.01; done; echo after");
  attempt.Start();
  const auto runs = [&] { return attempt.Report().phase == AttemptPhase::kRunning; };
  ASSERT_TRUE(Eventually(runs));
  const std::vector<pid_t> workers = attempt.Report().worker_pids;
  std::filesystem::remove_all(attempt.directory());
  ASSERT_TRUE(Eventually(runs));
  EXPECT_EQ(attempt.Report().worker_pids, workers);
  std::filesystem::remove(attempt.directory() + "/lock");
  ASSERT_TRUE(Eventually(runs));
  std::ofstream(attempt.work() + "/go") << "go\n";
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kItself);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(attempt.Log(0), "after\n");
}

TEST(AttemptDirectory, TheEndOfAJobThatRemovesItAtLastIsRecorded) {
  TestAttempt attempt(std::string(kOnceStarted) + "rm -rf \"$RENZAN_ATTEMPT_DIR\"");
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kItself);
  EXPECT_EQ(end.exit_code, 0);
}

TEST(AttemptDirectory, AJobThatRemovedItCanBeStopped) {
  TestAttempt attempt(
      std::string(kOnceStarted) +
      "rm -rf \"$RENZAN_ATTEMPT_DIR\"; echo $? > removed; while :; do sleep 0.01; done");
  attempt.Start();
  EXPECT_EQ(attempt.WaitForFile("removed"), "0\n");
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  RequestStop(attempt.directory(), 5);
  EXPECT_EQ(attempt.WaitForEnd().by, EndedBy::kRequest);
}

TEST(AttemptDirectory, TheSupervisorEndsWhenEverythingWasRemoved) {
  TestAttempt attempt("while ! [ -e go ]; do sleep 0.01; done");
  const pid_t supervisor = attempt.Start();
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  std::filesystem::remove_all(
      std::filesystem::path(attempt.directory()).parent_path().parent_path());  // all jobs
  std::ofstream(attempt.work() + "/go") << "go\n";
  EXPECT_TRUE(Eventually([&] { return !IsAlive(supervisor); }));
}

}  // namespace
}  // namespace renzan::cluster::local
