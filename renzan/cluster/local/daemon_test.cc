// The complete daemon, in a process of its own.

#include "renzan/cluster/local/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

DaemonOptions OptionsFor(const TemporaryDirectory& directory) {
  DaemonOptions options{.state_dir = directory / "state",
                        .socket = directory / "state/socket",
                        .config = {},
                        .supervisor = RENZAN_SUPERVISOR,
                        .allow_users = {}};
  options.config.pools["own"];
  return options;
}

// In a child process, which exits with the status of the daemon's error, if any.
pid_t Start(const DaemonOptions& options) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    RunDaemon(options);
  } catch (const Error& error) {
    ::_exit(error.exit_status());
  }
  ::_exit(0);
}

int EndOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Daemon, SurvivesItsStarter) {
  const TemporaryDirectory directory;
  DaemonOptions options = OptionsFor(directory);
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  ::close(fds[0]);  // nobody reads the ready line
  options.ready_fd = fds[1];
  const pid_t daemon = Start(options);
  ::close(fds[1]);
  // It writes the line once it listens, then serves until SIGTERM.
  ASSERT_TRUE(Eventually([&] { return FileExists(options.socket) || !IsAlive(daemon); }));
  ASSERT_EQ(::kill(daemon, SIGTERM), 0);
  EXPECT_EQ(EndOf(daemon), 0);
  EXPECT_FALSE(FileExists(options.socket));
}

TEST(Daemon, StateIsPrivate) {
  const TemporaryDirectory directory;
  const DaemonOptions options = OptionsFor(directory);
  const mode_t mask = ::umask(0);
  const pid_t daemon = Start(options);
  ::umask(mask);
  ASSERT_TRUE(Eventually([&] { return FileExists(options.socket) || !IsAlive(daemon); }));
  for (const char* name : {"lock", "state.db", "socket"}) {
    struct stat about {};
    EXPECT_EQ(::stat((options.state_dir + "/" + name).c_str(), &about), 0) << name;
    EXPECT_EQ(about.st_mode & 0777, 0600u) << name;
  }
  EXPECT_EQ(EndOf(Start(options)), 69) << "one is already running";
  ASSERT_EQ(::kill(daemon, SIGTERM), 0);
  EXPECT_EQ(EndOf(daemon), 0);
}

// Users whom the running daemon serves reach their jobs through its directories.
TEST(Daemon, ASecondOneLeavesTheDirectoriesOfTheFirstAsTheyAre) {
  const TemporaryDirectory directory;
  const DaemonOptions options = OptionsFor(directory);
  const std::string jobs = options.state_dir + "/jobs";
  const auto set_modes = [&](mode_t mode) {
    for (const std::string& path : {options.state_dir, jobs})
      EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  };
  const auto expect_modes = [&](mode_t mode, const char* when) {
    for (const std::string& path : {options.state_dir, jobs}) {
      struct stat about {};
      EXPECT_EQ(::stat(path.c_str(), &about), 0) << path;
      EXPECT_EQ(about.st_mode & 0777, mode) << path << ", " << when;
    }
  };
  ASSERT_EQ(::mkdir(options.state_dir.c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(jobs.c_str(), 0700), 0);
  {
    const auto lock = FileLock::TryLock(options.state_dir + "/lock", "pid of the first daemon");
    ASSERT_TRUE(lock);
    set_modes(0711);
    MakeStateDirectory(options);  // as `cluster up` does before it has a log
    expect_modes(0711, "before the second daemon starts");
    EXPECT_EQ(EndOf(Start(options)), 69);
    expect_modes(0711, "after the second daemon has failed");
    set_modes(0777);
    MakeStateDirectory(options);
    expect_modes(0711, "where others could write");
  }
  const pid_t daemon = Start(options);
  ASSERT_TRUE(Eventually([&] { return FileExists(options.socket) || !IsAlive(daemon); }));
  expect_modes(0700, "once the daemon has the lock");
  ::kill(daemon, SIGTERM);
  EXPECT_EQ(EndOf(daemon), 0);
}

// A child of a killed daemon shares its lock until it calls exec, which takes longer on a busy
// machine.
TEST(Daemon, StartsWhileAChildOfTheLastOneStillHoldsItsLock) {
  const TemporaryDirectory directory;
  const DaemonOptions options = OptionsFor(directory);
  ASSERT_EQ(::mkdir(options.state_dir.c_str(), 0700), 0);
  const std::string held = directory / "held";
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = FileLock::TryLock(options.state_dir + "/lock", "pid of the last daemon");
    WriteFileAtomically(held, "");
    ::usleep(500'000);
    ::_exit(0);
  }
  ASSERT_TRUE(Eventually([&] { return FileExists(held); }));
  const pid_t daemon = Start(options);
  ASSERT_TRUE(Eventually([&] { return FileExists(options.socket) || !IsAlive(daemon); }));
  ::kill(daemon, SIGTERM);
  EXPECT_EQ(EndOf(daemon), 0);
  EXPECT_EQ(EndOf(holder), 0);
}

}  // namespace
}  // namespace renzan::cluster::local
