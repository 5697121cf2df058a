#include "renzan/launch/launch.h"

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
#include <thread>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/launch/mpirun_output.h"

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

// A zombie is dead: whether it is reaped depends on the machine's init.
bool IsAlive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string ignored, name, state;
  return static_cast<bool>(file >> ignored >> name >> state) && state != "Z" && state != "X";
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
    EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; })) << "a worker was left behind";
  }

  // The launcher runs in a process of its own.
  void Start(int workers, std::vector<std::string> mode) {
    workers_ = workers;
    LaunchOptions options;
    options.workers = workers;
    options.backend = GetParam();
    options.program = LAUNCH_TEST_WORKER;
    options.argv = {"launch_test_worker", directory_.path()};
    options.argv.insert(options.argv.end(), mode.begin(), mode.end());
    options.grace_seconds = 1;
    launcher_ = fork();
    ASSERT_GE(launcher_, 0);
    if (launcher_ == 0) {
      // A shell may have started this test with these ignored.
      for (int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
      dup2(open((directory_ / "stderr").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), 2);
      _exit(LaunchLocalWorkers(options));
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

  TemporaryDirectory directory_;
  int workers_ = 0;
  pid_t launcher_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Backends, LaunchTest, testing::Values("gloo", "mpi"),
                         [](const auto& info) { return info.param; });

TEST_P(LaunchTest, AllEndWellAndKnowWhoTheyAre) {
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

TEST_P(LaunchTest, AFailedWorkersStatusBecomesOurs) {
  Start(3, {"exit", "1", "3"});
  EXPECT_EQ(Wait(), 3);
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*ended with exit status 3"));
}

TEST_P(LaunchTest, AComparisonThatDiffersIsAnAnswer) {
  Start(3, {"answer", "0", "1"});
  EXPECT_EQ(Wait(), 1);
  EXPECT_EQ(Errors(), "");
}

TEST_P(LaunchTest, AWorkerThatIgnoresTheEndIsKilled) {
  Start(2, {"stubborn", "0"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("worker 0"));
  EXPECT_EQ(AliveWorkers(), 0);
}

TEST_P(LaunchTest, TheCauseIsNamedNotTheVictims) {
  Start(4, {"cascade", "3"});
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), HasSubstr("worker 3"));
  EXPECT_THAT(Errors(), Not(HasSubstr("worker 0")));
}

TEST_P(LaunchTest, SigtermReachesEveryWorkerWhichMayTakeItsTime) {
  Start(3, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kTempFail));
  EXPECT_EQ(Errors(), "");
}

TEST_P(LaunchTest, AStopThatWasAskedForIsNoAccident) {
  const std::pair<int, std::string> requests[] = {{SIGINT, "signal 2 (Interrupt)"},
                                                  {SIGTERM, "signal 15 (Terminated)"},
                                                  {SIGHUP, "signal 1 (Hangup)"}};
  for (const auto& [signal, name] : requests) {
    Start(3, {"plain"});
    ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
    kill(launcher_, signal);
    EXPECT_EQ(Wait(), 128 + signal);
    EXPECT_EQ(Errors(), "stopped by " + name + "\n");
    EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; }));
    for (int rank = 0; rank < 3; ++rank) unlink(PidFile(rank).c_str());
    unlink((directory_ / "stderr").c_str());
  }
}

// mpirun names only who ended first.
class GlooLaunchTest : public LaunchTest {};
INSTANTIATE_TEST_SUITE_P(Gloo, GlooLaunchTest, testing::Values("gloo"));

TEST_P(GlooLaunchTest, AnAccidentAfterARequestIsStillReported) {
  Start(2, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  kill(PidOf(1), SIGSTOP);  // it does not answer the request
  kill(launcher_, SIGTERM);
  EXPECT_TRUE(Becomes([&] { return !IsAlive(PidOf(0)); }));
  kill(PidOf(1), SIGKILL);
  EXPECT_EQ(Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(Errors(), testing::ContainsRegex("error: worker 1 .*was killed by signal 9"));
}

TEST_P(LaunchTest, NobodyOutlivesAKilledLauncher) {
  Start(3, {"wait"});
  ASSERT_TRUE(Becomes([&] { return AllStarted(); }));
  EXPECT_EQ(AliveWorkers(), 3);
  kill(launcher_, SIGKILL);
  EXPECT_EQ(Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Becomes([&] { return AliveWorkers() == 0; }));
}

TEST(LaunchErrorsTest, AMissingMpirunIsNamed) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  LaunchOptions options;
  options.workers = 2;
  options.backend = "mpi";
  try {
    LaunchLocalWorkers(options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("openmpi-bin"));
  }
  setenv("PATH", path.c_str(), 1);
}

TEST(LaunchErrorsTest, TheBackendMustCarryWorkers) {
  LaunchOptions options;
  options.workers = 2;
  options.backend = "local";
  EXPECT_THROW(LaunchLocalWorkers(options), Error);
}

constexpr char kRow[] = "------------------------------------------------------------------\n";

TEST(MpirunOutputTest, PassesLinesOnAndReadsNotices) {
  MpirunOutput output;
  std::string shown = output.Feed("step 1\nste");
  shown += output.Feed("p 2\n");
  shown += output.Feed(std::string(kRow) + "mpirun noticed that process rank 1 with PID 0 on node");
  shown += output.Feed(" vm exited on signal 9 (Killed).\n" + std::string(kRow) + "after\nno end");
  shown += output.Finish();
  EXPECT_EQ(shown, "step 1\nstep 2\nafter\nno end");
  ASSERT_TRUE(output.worker_end());
  EXPECT_EQ(output.worker_end()->rank, 1);
  EXPECT_EQ(output.worker_end()->signal, 9);
}

TEST(MpirunOutputTest, ReadsExitStatusAndKeepsOtherNotices) {
  MpirunOutput output;
  const std::string other = std::string(kRow) + "There are not enough slots\n" + kRow;
  EXPECT_EQ(output.Feed(other), other);
  EXPECT_EQ(output.Feed(std::string(kRow) +
                        "Primary job  terminated normally, but 1 process returned\na non-zero exit "
                        "code. Per user-direction, the job has been aborted.\n" +
                        kRow),
            "");
  EXPECT_EQ(output.Feed(std::string(kRow) +
                        "mpirun detected that one or more processes exited with non-zero status\n\n"
                        "  Process name: [[21489,1],2]\n  Exit code:    69\n" +
                        kRow),
            "");
  ASSERT_TRUE(output.worker_end());
  EXPECT_EQ(output.worker_end()->rank, 2);
  EXPECT_EQ(output.worker_end()->exit_status, 69);
  EXPECT_EQ(output.worker_end()->signal, 0);
}

TEST(MpirunOutputTest, AnUnfinishedNoticeIsShown) {
  MpirunOutput output;
  const std::string text = std::string(kRow) + "No such file\n";
  EXPECT_EQ(output.Feed(text), "");
  EXPECT_EQ(output.Finish(), text);
}

}  // namespace
}  // namespace renzan
