#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <tuple>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/process_table.h"
#include "renzan/launch/elastic.h"

namespace renzan {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// Waits at most ten seconds.
bool Becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class LaunchTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "mpi" && std::system("command -v mpirun > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  }

  void TearDown() override {
    if (launcher_ > 0) {
      kill(launcher_, SIGKILL);
      waitpid(launcher_, nullptr, 0);
    }
    EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; })) << "a worker is still running";
  }

  // The launcher runs in its own process.
  void Start(int workers, std::vector<std::string> mode) {
    workers_ = workers;
    LaunchOptions options;
    options.workers = workers;
    options.backend = GetParam();
    options.program = LAUNCH_TEST_WORKER;
    options.argv = {"launch_test_worker", directory_.path()};
    options.argv.insert(options.argv.end(), mode.begin(), mode.end());
    options.kind = kind_;
    options.grace_seconds = 1;
    std::ofstream(directory_ / "stderr", std::ios::app).flush();
    launcher_ = fork();
    ASSERT_GE(launcher_, 0);
    if (launcher_ == 0) {
      // A shell may have started this test with these ignored.
      for (int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
      dup2(open((directory_ / "stderr").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), 2);
      _exit(LaunchElastic(options, elastic_).last.exit_status);
    }
  }

  bool AllStarted() const {
    for (int rank = 0; rank < workers_; ++rank)
      if (!FileExists(PidFile(rank))) return false;
    return true;
  }

  // The launcher's exit status, or 128 + signal.
  int Wait() {
    int status = 0;
    if (!Becomes([&] { return waitpid(launcher_, &status, WNOHANG) == launcher_; })) return -1;
    launcher_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::string PidFile(int rank) const { return directory_ / ("pid." + std::to_string(rank)); }
  std::string Errors() const { return ReadFile(directory_ / "stderr"); }

  pid_t PidOf(int rank) const {
    return FileExists(PidFile(rank)) ? std::atoi(ReadFile(PidFile(rank)).c_str()) : -1;
  }

  int AliveWorkers() const {
    int alive = 0;
    for (int rank = 0; rank < workers_; ++rank) alive += PidOf(rank) > 0 && IsAlive(PidOf(rank));
    return alive;
  }

  // A signal that comes before the stop has taken effect may be handled first.
  void Suspend(int rank) const {
    kill(PidOf(rank), SIGSTOP);
    ASSERT_TRUE(Becomes(
        [&] { return StatusField(ProcessFile(PidOf(rank), "status"), "State").starts_with("T"); }));
  }

  std::string Starts() const { return ReadFile(directory_ / "starts"); }

  TemporaryDirectory directory_;
  ElasticOptions elastic_;
  WorkerProgram kind_ = WorkerProgram::kRenzan;
  int workers_ = 0;
  pid_t launcher_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Backends, LaunchTest, testing::Values("gloo", "mpi"),
                         [](const auto& info) { return info.param; });

TEST_P(LaunchTest, AllSucceedAndKnowTheirRanks) {
  Start(3, {"ok"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(Errors(), "");
  for (int rank = 0; rank < 3; ++rank) {
    std::ifstream file(PidFile(rank));
    int pid = 0, world = 0, local_rank = -1;
    std::string master;
    file >> pid >> world >> local_rank >> master;
    EXPECT_EQ(world, 3);
    EXPECT_EQ(local_rank, rank);
    if (std::string(GetParam()) == "gloo") {
      EXPECT_EQ(master, "127.0.0.1");
    }
  }
}

TEST_P(LaunchTest, AKilledWorkerIsNamedAndEndsTheRun) {
  Start(3, {"die", "2"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 2 .*was killed by signal 9"));
}

TEST_P(LaunchTest, ReturnsTheFailedWorkersStatus) {
  Start(3, {"exit", "1", "3"});
  EXPECT_EQ(Wait(), 3);
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*ended with exit status 3"));
}

TEST_P(LaunchTest, AComparisonThatDiffersIsAResult) {
  Start(3, {"answer", "0", "1"});
  EXPECT_EQ(Wait(), 1);
  EXPECT_EQ(Errors(), "");
}

TEST_P(LaunchTest, AWorkerThatIgnoresSigtermIsKilled) {
  Start(2, {"stubborn", "0"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("worker 0"));
  EXPECT_EQ(AliveWorkers(), 0);
}

TEST_P(LaunchTest, NamesTheCauseNotTheWorkersThatLostAPeer) {
  Start(4, {"cascade", "3", "69"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("worker 3"));
  EXPECT_THAT(Errors(), Not(HasSubstr("worker 0")));
}

TEST_P(LaunchTest, SigtermReachesEveryWorkerAndWaitsForThem) {
  Start(3, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "");
}

TEST_P(LaunchTest, ARequestedStopIsNotAnError) {
  const std::tuple<int, int, std::string> requests[] = {{SIGINT, 130, "signal 2 (Interrupt)"},
                                                        {SIGTERM, 75, "signal 15 (Terminated)"},
                                                        {SIGHUP, 75, "signal 1 (Hangup)"}};
  elastic_.max_restarts = 3;
  for (const auto& [signal, status, name] : requests) {
    Start(3, {"plain"});
    ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
    kill(launcher_, signal);
    EXPECT_EQ(Wait(), status);
    EXPECT_EQ(Errors(), "stopped by " + name + "\n");
    EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; }));
    for (int rank = 0; rank < 3; ++rank) unlink(PidFile(rank).c_str());
    unlink((directory_ / "stderr").c_str());
  }
}

TEST_P(LaunchTest, WorkersFinishingOnRequestAreNotHurried) {
  Start(3, {"finish", "all", "5"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  std::this_thread::sleep_for(milliseconds(300));
  kill(launcher_, SIGTERM);  // a repeated request
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "");
}

TEST_P(LaunchTest, ALostWorkerIsReplaced) {
  elastic_ = {.max_restarts = 3, .backoff_seconds = 0.1};
  Start(2, {"recover", "1"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), testing::MatchesRegex("worker 1 .*was killed by signal 9 \\(Killed\\): "
                                              "restarting with 2 workers in 0.1 s "
                                              "\\(restart 1 of 3\\)\n"));
  EXPECT_THAT(Lines(Starts()), testing::UnorderedElementsAre("0 0 2", "0 1 2", "1 0 2", "1 1 2"));
}

TEST_P(LaunchTest, TheRemainingWorkersContinue) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(2, {"recover", "0"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), HasSubstr("restarting with 1 worker in 0 s (restart 1 of 1)"));
  EXPECT_THAT(Lines(Starts()), testing::UnorderedElementsAre("0 0 2", "0 1 2", "1 0 1"));
}

TEST_P(LaunchTest, LostWorkersComeBack) {
  elastic_ = {.min_workers = 1, .max_restarts = 2, .backoff_seconds = 0, .grow_after_seconds = 0.5};
  Start(3, {"regrow", "1"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), HasSubstr("restarting with 2 workers in 0 s (restart 1 of 2)\n"
                                  "stopping the workers to restart with more of them\n"
                                  "growing from 2 to 3 workers\n"));
  EXPECT_THAT(Lines(Starts()), testing::UnorderedElementsAre("0 0 3", "0 1 3", "0 2 3", "1 0 2",
                                                             "1 1 2", "2 0 3", "2 1 3", "2 2 3"));
}

TEST_P(LaunchTest, WorkersThatWouldLoseTheirWorkAreNotStoppedToGrow) {
  elastic_ = {.min_workers = 1, .max_restarts = 2, .backoff_seconds = 0, .grow_after_seconds = 1};
  Start(2, {"deaf", "1"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), HasSubstr("not growing: a worker does not handle SIGTERM"));
  EXPECT_THAT(Lines(Starts()), testing::UnorderedElementsAre("0 0 2", "0 1 2", "1 0 1"));
}

TEST_P(LaunchTest, RestartsCanBeUsedUp) {
  elastic_ = {.max_restarts = 2, .backoff_seconds = 0};
  Start(2, {"die", "0"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("(restart 2 of 2)"));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 0 .*was killed by signal 9 .*; no "
                                               "restart is left after 2"));
  EXPECT_THAT(Starts(), HasSubstr("2 1 2"));
}

TEST_P(LaunchTest, APermanentFailureIsNotRetried) {
  elastic_ = {.max_restarts = 2, .backoff_seconds = 0};
  Start(2, {"exit", "1", "70"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kSoftware));
  EXPECT_THAT(Lines(Starts()), testing::UnorderedElementsAre("0 0 2", "0 1 2"));
}

// mpirun names only the worker that ended first.
class GlooLaunchTest : public LaunchTest {};
INSTANTIATE_TEST_SUITE_P(Gloo, GlooLaunchTest, testing::Values("gloo"));

TEST_P(GlooLaunchTest, AFailureAfterAStopRequestIsReportedButNotRestarted) {
  elastic_.max_restarts = 3;
  Start(2, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  Suspend(1);  // it does not react to the request
  kill(launcher_, SIGTERM);
  EXPECT_TRUE(Becomes([&] { return !IsAlive(PidOf(0)); }));
  kill(PidOf(1), SIGKILL);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*was killed by signal 9"));
}

TEST_P(LaunchTest, NoWorkerOutlivesAKilledLauncher) {
  Start(3, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  EXPECT_EQ(AliveWorkers(), 3);
  kill(launcher_, SIGKILL);
  EXPECT_EQ(Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; }));
}

TEST_P(GlooLaunchTest, AWorkerThatFinishesFirstStopsNoOther) {
  Start(2, {"finish", "1", "4"});  // longer than any grace
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  EXPECT_TRUE(Becomes([&] { return !IsAlive(PidOf(0)); }));
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "");
}

TEST_P(GlooLaunchTest, AfterAStopRequestALostPeerDoesNotStopTheOthers) {
  Start(2, {"bereave", "1", "4", "69"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  EXPECT_TRUE(Becomes([&] { return !IsAlive(PidOf(0)); }));
  std::this_thread::sleep_for(milliseconds(3500));
  EXPECT_TRUE(IsAlive(PidOf(1)));
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "stopped by signal 15 (Terminated)\n");
}

TEST_P(GlooLaunchTest, AllWorkersThatDiedAreLost) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(4, {"recover", "all"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), HasSubstr("restarting with 1 worker "));
}

TEST_P(GlooLaunchTest, WorkersThatLostAPeerAreNotLost) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(4, {"cascade", "3", "69"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("restarting with 3 workers "));
}

TEST_P(GlooLaunchTest, APeerThatIsSlowToEndIsStillTheCause) {
  elastic_ = {.max_restarts = 1, .backoff_seconds = 0};
  Start(3, {"explain", "1", "73", "69"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kCantCreate));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*ended with exit status 73"));
}

TEST_P(GlooLaunchTest, WorkersStoppedByTheLauncherAreNotLost) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(3, {"stubborn", "2"});
  EXPECT_TRUE(Becomes([&] { return Errors() != ""; }));
  EXPECT_THAT(Errors(), HasSubstr("restarting with 2 workers "));
  kill(launcher_, SIGINT);  // in the second attempt no worker dies
  EXPECT_EQ(Wait(), 130);
}

// A program with exit statuses of its own.
class AnyProgramTest : public LaunchTest {
 protected:
  AnyProgramTest() { kind_ = WorkerProgram::kAny; }

  pid_t ChildOf(int rank) const {
    const std::string path = directory_ / ("child." + std::to_string(rank));
    return FileExists(path) ? std::atoi(ReadFile(path).c_str()) : 0;
  }
  bool AllHaveChildren() const {
    for (int rank = 0; rank < workers_; ++rank)
      if (ChildOf(rank) == 0) return false;
    return true;
  }
  int AliveChildren() const {
    int alive = 0;
    for (int rank = 0; rank < workers_; ++rank) alive += IsAlive(ChildOf(rank));
    return alive;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, AnyProgramTest, testing::Values("gloo", "mpi"),
                         [](const auto& info) { return info.param; });

TEST_P(AnyProgramTest, OneIsAFailure) {
  Start(2, {"answer", "1", "1"});
  EXPECT_EQ(Wait(), 1);
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*ended with exit status 1"));
}

TEST_P(AnyProgramTest, IsRestartedAfterAnyFailure) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(3, {"falter", "1", "1"});
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Errors(), testing::MatchesRegex(
                            "worker 1 .*ended with exit status 1: restarting with 2 workers .*\n"));
}

TEST_P(AnyProgramTest, IsNotRestartedAfterALastingFailure) {
  elastic_ = {.max_restarts = 1, .backoff_seconds = 0};
  Start(2, {"falter", "1", "65"});
  EXPECT_EQ(Wait(), 65);
  EXPECT_THAT(Errors(), Not(HasSubstr("restart")));
}

TEST_P(AnyProgramTest, GetsNoSignalThatWouldOnlyEndIt) {
  Start(2, {"plain"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGUSR1);
  EXPECT_TRUE(Becomes([&] { return Errors() != ""; }));
  EXPECT_EQ(Errors(), "SIGUSR1 was not passed on to 2 of 2 workers (no handler)\n");
  EXPECT_EQ(AliveWorkers(), 2);
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Wait(), 75);
}

class GlooAnyProgramTest : public AnyProgramTest {};
INSTANTIATE_TEST_SUITE_P(Gloo, GlooAnyProgramTest, testing::Values("gloo"));

// An exit status without a meaning may mean a lost peer, but does not say so.
TEST_P(GlooAnyProgramTest, TheFirstToFailIsTheCause) {
  Start(2, {"explain", "1", "73", "1"});
  EXPECT_EQ(Wait(), 1);
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 0 .*ended with exit status 1"));
}

TEST_P(GlooAnyProgramTest, WhatWorkersLeaveBehindEndsWithThem) {
  Start(2, {"leave"});
  EXPECT_EQ(Wait(), 0);
  ASSERT_TRUE(AllHaveChildren());
  EXPECT_EQ(AliveChildren(), 0);
}

TEST_P(GlooAnyProgramTest, WorkersThatLostAPeerAreNotLost) {
  elastic_ = {.min_workers = 1, .max_restarts = 1, .backoff_seconds = 0};
  Start(4, {"cascade", "3", "1"});
  EXPECT_EQ(Wait(), 1);
  EXPECT_THAT(Errors(), testing::ContainsRegex("worker 3 .*: restarting with 3 workers "));
}

TEST_P(GlooAnyProgramTest, AfterAStopRequestALostPeerIsNoFailure) {
  Start(2, {"bereave", "1", "1", "1"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "stopped by signal 15 (Terminated)\n");
}

TEST_P(GlooAnyProgramTest, ChildrenOfWorkersDoNotOutliveAKilledLauncher) {
  Start(2, {"parent"});
  ASSERT_TRUE(Becomes([&] { return AllHaveChildren(); }));
  EXPECT_EQ(AliveChildren(), 2);
  kill(launcher_, SIGKILL);
  EXPECT_EQ(Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Becomes([&] { return AliveChildren() == 0; }));
}

TEST_P(GlooAnyProgramTest, StopSignalsAreForTheWorkerNotItsChildren) {
  Start(2, {"parent"});
  ASSERT_TRUE(Becomes([&] { return AllHaveChildren(); }));
  Suspend(0);  // the launcher waits for it
  kill(launcher_, SIGTERM);
  EXPECT_TRUE(Becomes([&] { return !IsAlive(PidOf(1)); }));
  EXPECT_EQ(AliveChildren(), 2);
  kill(PidOf(0), SIGCONT);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(AliveChildren(), 0);
}

class MpiLaunchTest : public LaunchTest {
 protected:
  pid_t Mpirun() const {
    const std::vector<pid_t> children = ChildrenOf(launcher_);
    return children.size() == 1 ? children[0] : -1;
  }
};
INSTANTIATE_TEST_SUITE_P(Mpi, MpiLaunchTest, testing::Values("mpi"));

TEST_P(MpiLaunchTest, MpirunItselfDoesNotReactToSigterm) {
  Start(2, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  ASSERT_GT(Mpirun(), 0);
  kill(Mpirun(), SIGTERM);
  std::this_thread::sleep_for(milliseconds(1500));  // it would forward it after a second
  EXPECT_EQ(AliveWorkers(), 2);
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
}

TEST_P(MpiLaunchTest, NoWorkerOutlivesAKilledMpirun) {
  Start(2, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  ASSERT_GT(Mpirun(), 0);
  kill(Mpirun(), SIGKILL);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: mpirun .*was killed by signal 9"));
  EXPECT_EQ(AliveWorkers(), 0);
}

}  // namespace
}  // namespace renzan
