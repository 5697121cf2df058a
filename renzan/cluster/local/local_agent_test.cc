// The children of the daemon that copy and remove files, as root or as another user.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/pipe.h"
#include "renzan/cluster/local/agent.h"

namespace renzan::cluster::local {
namespace {

// A child's status; nothing if it has not ended after 20 s.
std::optional<int> StatusOf(pid_t child) {
  for (int tries = 0; tries < 2000; ++tries) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::nullopt;
}

TEST(LocalAgent, CopyingEndsWithTheDaemon) {
  const TemporaryDirectory directory;
  WriteFileAtomically(directory / "out", "1");
  // Blocks cp, because nobody reads the pipe.
  CreateDirectories(directory / "artifacts");
  ASSERT_EQ(mkfifo((directory / "artifacts/out").c_str(), 0600), 0);
  const OrphanReaper orphans;  // adopts what the daemon leaves
  const Pipe pipe = MakePipe();
  const pid_t daemon = fork();
  if (daemon == 0) {
    const pid_t copying = MakeLocalAgent("", "")->StartCopying(
        directory / "out", directory / "artifacts", geteuid(), getegid(), directory / "log");
    _exit(write(pipe.write_end.get(), &copying, sizeof copying) == sizeof copying ? 0 : 1);
  }
  ASSERT_EQ(StatusOf(daemon), 0);
  pid_t copying = 0;
  ASSERT_EQ(read(pipe.read_end.get(), &copying, sizeof copying), ssize_t{sizeof copying});
  const std::optional<int> status = StatusOf(copying);
  ASSERT_TRUE(status) << "it still runs: the next daemon would copy at the same time";
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
}

TEST(LocalAgent, UploadsAsTheJobsUserWithTheJobsEnvironment) {
  const TemporaryDirectory directory;
  const std::string program = directory / "renzan";
  WriteFileAtomically(program,
                      "#!/bin/sh\necho \"$(id -u) $KEY $#: $*\"\ncat \"$3\" >&2\nexit 77\n");
  WriteFileAtomically(directory / "list", "/jobs/1/./run\n");
  for (const std::string& path : {directory.path(), program, directory / "list"})
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const uid_t user = geteuid() == 0 ? 65534 : geteuid();  // nobody
  const auto agent = MakeLocalAgent("", program);
  ::setenv("SECRET_OF_THE_DAEMON", "s", 1);
  const pid_t uploading =
      agent->StartUploading({.sources = directory / "list",
                             .to = "s3://b/p",
                             .environment = {{"KEY", "key ${SECRET_OF_THE_DAEMON}"}},
                             .log = directory / "log",
                             .uid = user,
                             .gid = getegid()});
  std::optional<int> status;
  for (int tries = 0; tries < 2000 && !status; ++tries) {
    status = agent->Reap(uploading);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(status, 77);
  EXPECT_EQ(ReadFile(directory / "log"),
            fmt::format("{} key ${{SECRET_OF_THE_DAEMON}} 5: upload --files-from {}/list -- "
                        "s3://b/p\n/jobs/1/./run\n",
                        user, directory.path()));
  struct stat info {};
  ASSERT_EQ(::stat((directory / "log").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(LocalAgent, ChecksANode) {
  const TemporaryDirectory directory;
  const auto agent = MakeLocalAgent("", "");
  const auto end_of = [&](pid_t check) {
    std::optional<int> status;
    for (int tries = 0; tries < 2000 && !status; ++tries) {
      status = agent->Reap(check);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return status;
  };
  const pid_t fails = agent->StartChecking({"sh", "-c", "echo $RENZAN_NODE is hot >&2; exit 3"},
                                           {{"RENZAN_NODE", "own-1"}}, directory / "log");
  EXPECT_EQ(end_of(fails), 3);
  EXPECT_EQ(ReadFile(directory / "log"), "own-1 is hot\n");
}

TEST(LocalAgent, StopsACheckWithWhatItHasStarted) {
  const TemporaryDirectory directory;
  const auto agent = MakeLocalAgent("", "");
  const OrphanReaper orphans;  // adopts what the check leaves
  const std::string log = directory / "log";
  const pid_t hangs = agent->StartChecking({"sh", "-c", "sleep 1000 & echo $!; wait"}, {}, log);
  std::string started;
  for (int tries = 0; tries < 2000 && !started.ends_with('\n'); ++tries) {
    started = ReadFile(log);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(started.ends_with('\n'));
  agent->StopChecking(hangs);
  for (const pid_t process : {hangs, static_cast<pid_t>(std::stol(started))}) {
    const std::optional<int> status = StatusOf(process);
    ASSERT_TRUE(status) << process << " still runs";
    EXPECT_TRUE(WIFSIGNALED(*status));
    EXPECT_EQ(WTERMSIG(*status), SIGKILL);
  }
}

TEST(LocalAgent, RemovesDirectories) {
  const TemporaryDirectory directory;
  CreateDirectories(directory / "old/attempt-0");
  const auto agent = MakeLocalAgent("", "");
  const pid_t removing = agent->StartRemoving({directory / "old"});
  std::optional<int> status;
  for (int tries = 0; tries < 2000 && !status; ++tries) {
    status = agent->Reap(removing);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(FileExists(directory / "old"));
}

}  // namespace
}  // namespace renzan::cluster::local
