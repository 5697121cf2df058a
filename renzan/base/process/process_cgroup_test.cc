#include "renzan/base/process/process_cgroup.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_table.h"

namespace renzan {
namespace {

using testing::UnorderedElementsAre;

bool Eventually(const std::function<bool()>& condition) {
  for (int look = 0; look < 2000; ++look) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

pid_t Sleeper() {
  const pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  return pid;
}

// Files instead of a group.
class CgroupFiles : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  TemporaryDirectory dir_;
};

TEST_F(CgroupFiles, ProcessesAreTheLiveOnesOfAllGroupsInside) {
  const pid_t first = Sleeper(), second = Sleeper(), ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  Write("cgroup.procs", fmt::format("0\n{}\n{}\n", first, getpid()));
  Write("inner/one/cgroup.procs", fmt::format("{}\n{}\n{}\n", second, ended, INT_MAX));
  const ProcessCgroup group({dir_.path(), true});
  EXPECT_THAT(group.Processes(), UnorderedElementsAre(first, second));
  for (const pid_t pid : {first, second, ended}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  EXPECT_THAT(group.Processes(), UnorderedElementsAre());
}

TEST_F(CgroupFiles, Version2IsKilledByTheKernel) {
  const pid_t process = Sleeper();
  Write("cgroup.procs", fmt::format("{}\n", process));
  Write("cgroup.kill", "");
  EXPECT_FALSE(ProcessCgroup({dir_.path(), true}).Kill(0)) << "no kernel has read the file";
  EXPECT_EQ(ReadFile(dir_ / "cgroup.kill"), "1");
  EXPECT_TRUE(IsAlive(process));
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

TEST_F(CgroupFiles, OlderKernelsFreezeKillAndThaw) {
  const pid_t process = Sleeper();
  Write("cgroup.procs", fmt::format("{}\n", process));
  Write("cgroup.events", "populated 1\nfrozen 1\n");
  Write("cgroup.freeze", "-");
  EXPECT_TRUE(ProcessCgroup({dir_.path(), true}).Kill(60));
  EXPECT_EQ(ReadFile(dir_ / "cgroup.freeze"), "0");
  EXPECT_FALSE(IsAlive(process));
  waitpid(process, nullptr, 0);
}

TEST_F(CgroupFiles, Version1FreezesKillsAndThaws) {
  const pid_t process = Sleeper();
  Write("cgroup.procs", fmt::format("{}\n", process));
  Write("freezer.state", "------");
  EXPECT_TRUE(ProcessCgroup({dir_.path(), false}).Kill(60));
  EXPECT_EQ(ReadFile(dir_ / "freezer.state"), "THAWED");
  EXPECT_FALSE(IsAlive(process));
  waitpid(process, nullptr, 0);
}

TEST_F(CgroupFiles, AGroupThatDoesNotExistIsEmpty) {
  const ProcessCgroup group({dir_ / "none", true});
  EXPECT_TRUE(group.Kill(0));
  EXPECT_TRUE(group.Remove());
  EXPECT_THROW(group.Entrance(), Error);
}

// A real group of each version, where one can be made.
class RealCgroup : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const Cgroup& own : CgroupsOfThisProcess("freezer")) {
      if (own.v2 != GetParam()) continue;
      group_.emplace(Cgroup{fmt::format("{}/renzan-test-{}", own.directory, getpid()), own.v2});
      break;
    }
    if (!group_) GTEST_SKIP() << "not mounted here";
    try {
      group_->Make();
    } catch (const Error& error) {
      group_.reset();
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override {
    if (!group_) return;
    EXPECT_TRUE(group_->Kill(10));
    EXPECT_TRUE(group_->Remove());
    EXPECT_FALSE(FileExists(group_->directory()));
  }
  // Runs a script in the group, without waiting for it.
  void Run(const std::string& script) {
    const Descriptor entrance = group_->Entrance();
    const auto started = StartChild({.argv = {"sh", "-c", script},
                                     .environment = OwnEnvironment(),
                                     .working_directory = dir_.path(),
                                     .death_signal = 0,
                                     .cgroups = {entrance.get()}});
    ASSERT_TRUE(std::holds_alternative<pid_t>(started));
    child_ = std::get<pid_t>(started);
  }
  int64_t Beats() const {
    if (!FileExists(dir_ / "beats")) return 0;
    return static_cast<int64_t>(ReadFile(dir_ / "beats").size());
  }

  TemporaryDirectory dir_;
  std::optional<ProcessCgroup> group_;
  pid_t child_ = 0;
};

// Each link of the chain leads a session, has no environment, and hands on after 20 ms.
TEST_P(RealCgroup, KillsAChainThatHandsOn) {
  std::ofstream(dir_ / "link") << "echo >> beats; sleep 0.02; setsid env -i /bin/sh link &\n";
  Run("for i in 1 2 3; do setsid env -i /bin/sh link & done");
  ASSERT_TRUE(Eventually([&] { return Beats() > 20; }));
  waitpid(child_, nullptr, 0);
  EXPECT_TRUE(group_->Kill(10));
  EXPECT_THAT(group_->Processes(), UnorderedElementsAre());
  const int64_t beats = Beats();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(Beats(), beats);
}

TEST_P(RealCgroup, KillsStoppedProcessesAndThoseOfGroupsInside) {
  std::filesystem::create_directory(group_->directory() + "/inside");
  Run("sleep 1000 & kill -STOP $!; echo $$ > " + group_->directory() +
      "/inside/cgroup.procs; echo >> beats; sleep 1000");
  ASSERT_TRUE(Eventually([&] { return Beats() > 0; }));
  EXPECT_FALSE(group_->Remove());
  EXPECT_TRUE(group_->Kill(10));
  waitpid(child_, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Versions, RealCgroup, testing::Values(true, false),
                         [](const auto& of) { return std::string(of.param ? "Two" : "One"); });

}  // namespace
}  // namespace renzan
