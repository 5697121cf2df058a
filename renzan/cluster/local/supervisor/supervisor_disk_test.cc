// Supervisors: log rotation and full disks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

using testing::HasSubstr;

TEST(SupervisorDisk, RotatesLogs) {
  TestAttempt attempt("seq 1 100000");
  attempt.plan.log_bytes = 100000;
  attempt.plan.log_files = 3;
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  const std::string path = attempt.directory() + "/worker-0.log";
  const std::string text = ReadFile(path + ".2") + ReadFile(path + ".1") + ReadFile(path);
  EXPECT_LE(ReadFile(path + ".1").size(), 100000u);
  EXPECT_FALSE(FileExists(path + ".3"));
  // The files contain the end of the output without gaps.
  std::istringstream lines(text);
  int first = 0, last = 0;
  lines >> first;
  last = first;
  for (int line = 0; lines >> line; last = line) ASSERT_EQ(line, last + 1);
  EXPECT_GT(first, 1);
  EXPECT_EQ(last, 100000);
}

// A small file system in memory. Needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    CreateDirectories(path);
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  void Grow() { mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, "size=16m"); }

 private:
  std::string path_;
  bool mounted_;
};

TEST(SupervisorDisk, AFullDiskDoesNotStopWorkersAndLosesNoEnd) {
  TestAttempt attempt(
      "seq 1 200000; echo up > full; while ! [ -e go ]; do sleep 0.01; done; "
      "echo last words");
  SmallDisk disk(attempt.directory());
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  attempt.Start();
  attempt.WaitForFile("full");
  disk.Grow();
  std::ofstream(attempt.work() + "/go") << "go\n";
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.message, HasSubstr("bytes of its output were lost"));
  const std::string log = attempt.Log(0);
  EXPECT_TRUE(log.starts_with("1\n2\n3\n"));
  EXPECT_THAT(log, HasSubstr("bytes of output were lost here: No space left on device]\n"));
  EXPECT_TRUE(log.ends_with("\nlast words\n"));
}

TEST(SupervisorDisk, StopsAWorkerWhoseDeadlineCannotBeWritten) {
  TestAttempt attempt("trap 'exit 75' TERM; echo up > ready; while :; do sleep 0.01; done");
  SmallDisk disk(attempt.plan.run_dir);
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  attempt.plan.saves_on_stop = true;
  attempt.Start();
  attempt.WaitForFile("ready");
  std::ofstream(attempt.plan.run_dir + "/filler") << std::string(1 << 20, 'x');
  RequestStop(attempt.directory(), 600);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.exit_code, 75);
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(attempt.plan.run_dir), {}), 1)
      << "something half-written was left";
}

TEST(SupervisorDisk, IsStoppedAndRecordsTheEndOnAFullDisk) {
  TestAttempt attempt("seq 1 200000; echo up > full; while :; do sleep 0.01; done");
  SmallDisk disk(attempt.directory());
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  attempt.plan.saves_on_stop = true;
  attempt.Start();
  attempt.WaitForFile("full");
  std::ofstream(attempt.directory() + "/filler") << std::string(1 << 20, 'x');
  // The second request is written to what is left of the first one.
  RequestCheckpoint(attempt.directory());
  const std::string requests = attempt.directory() + "/requests";
  ASSERT_TRUE(Eventually([&] { return FileExists(requests + "/spare-0"); }));
  RequestStop(attempt.directory(), 600);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(end.exit_code, 143);
  EXPECT_TRUE(Eventually([&] {
    return !FileExists(requests + "/spare-0") && !FileExists(attempt.directory() + "/end.spare");
  })) << "spare files were left";
}

// How many files whose names begin so are made in the directory within a second.
int MadeInASecond(const std::string& directory, const std::string& beginning) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  inotify_add_watch(watch, directory.c_str(), IN_CREATE);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  int made = 0;
  std::array<char, 1 << 16> events;
  while (const ssize_t bytes = read(watch, events.data(), events.size())) {
    if (bytes < 0) break;
    for (ssize_t at = 0; at < bytes;) {
      inotify_event event;
      std::memcpy(&event, &events[static_cast<size_t>(at)], sizeof(event));
      const char* name = &events[static_cast<size_t>(at) + sizeof(event)];
      made += event.len > 0 && std::string(name).starts_with(beginning);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
    }
  }
  close(watch);
  return made;
}

// The removal of what it could not write woke it at once to try again, which took half a core while
// the disk was full.
TEST(SupervisorDisk, TriesOnceASecondToWriteTheStart) {
  TestAttempt attempt("echo up > up; while ! [ -e go ]; do sleep 0.01; done");
  const std::string in_the_way = attempt.directory() + "/started.json";
  CreateDirectories(in_the_way + "/directory");
  attempt.Start();
  attempt.WaitForFile("up");
  ASSERT_TRUE(Eventually([&] { return MadeInASecond(attempt.directory(), "started.json.") > 0; }));
  EXPECT_LE(MadeInASecond(attempt.directory(), "started.json."), 3);
  std::filesystem::remove_all(in_the_way);
  EXPECT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  std::ofstream(attempt.work() + "/go") << "go\n";
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
}

// As an attempt of an earlier version.
TEST(SupervisorDisk, WaitsForDiskSpaceToRecordTheEndIfNoneIsReserved) {
  TestAttempt attempt("while ! [ -e go ]; do sleep 0.01; done; seq 1 200000; echo up > done");
  SmallDisk disk(attempt.directory());
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  const pid_t supervisor = attempt.Start();
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  std::filesystem::remove(attempt.directory() + "/end.spare");
  std::ofstream(attempt.work() + "/go") << "go\n";
  attempt.WaitForFile("done");
  // Wait until the worker has ended.
  const std::string children =
      "/proc/" + std::to_string(supervisor) + "/task/" + std::to_string(supervisor) + "/children";
  ASSERT_TRUE(Eventually([&] {
    std::ifstream file(children);
    std::string child;
    return !(file >> child);
  }));
  EXPECT_EQ(attempt.Report().supervisor, supervisor);
  EXPECT_FALSE(attempt.Report().end);
  disk.Grow();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
}

TEST(SupervisorDisk, KillsAJobWhoseFilesTakeTooMuch) {
  TestAttempt within("head -c 3M /dev/zero > ../jobs/1/file; sleep 2.5; exit 3");
  TestAttempt beyond(
      "trap '' TERM; head -c 3M /dev/zero > ../jobs/1/file; echo up > within; sleep 1.5; "
      "head -c 3M /dev/zero > ../jobs/1/another; sleep 1000");
  for (TestAttempt* attempt : {&within, &beyond}) {
    attempt->plan.max_disk_mib = 5;
    attempt->Start();
  }
  const AttemptEnd end = beyond.WaitForEnd();
  EXPECT_TRUE(FileExists(beyond.work() + "/within"));
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.workers[0].signal, SIGKILL);
  EXPECT_THAT(end.message,
              testing::ContainsRegex("^its files in the state directory took [67]MiB, more than "
                                     "the 5MiB that a job may have there .disk.max_per_job"));
  EXPECT_EQ(within.WaitForEnd().exit_code, 3);
}

}  // namespace
}  // namespace renzan::cluster::local
