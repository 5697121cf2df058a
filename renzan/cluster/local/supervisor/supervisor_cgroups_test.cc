// Attempts whose processes are held by control groups: each link of a chain leads a session, has no
// environment, and hands on to a new process after 20 ms.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/process_cgroup_support.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_cgroups.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

using testing::HasSubstr;

class SupervisorCgroups : public testing::TestWithParam<bool> {
 protected:
  SupervisorCgroups() : attempt_("sh link 2>/dev/null; exec sleep 1000") {
    std::ofstream(attempt_.work() + "/link")
        << "echo >> beats; sleep 0.02; setsid env -i /bin/sh link &\n";
  }
  // In groups of version 2, or the freezer of version 1.
  void SetUp() override {
    for (const Cgroup& own : CgroupsOfThisProcess("freezer"))
      if (own.v2 == GetParam() && attempt_.plan.cgroups.hold.directory.empty())
        attempt_.plan.cgroups.hold = own;
    if (attempt_.plan.cgroups.hold.directory.empty()) GTEST_SKIP() << "not mounted here";
    if (access(attempt_.plan.cgroups.hold.directory.c_str(), W_OK) != 0)
      GTEST_SKIP() << "groups cannot be made here";
  }
  void StartChain() {
    supervisor_ = attempt_.Start();
    ASSERT_TRUE(Eventually([&] { return Beats() > 10; }));
    const AttemptPlan plan = ReadPlan(AttemptPaths(attempt_.directory()));
    group_ = plan.cgroups.hold.directory + "/" + plan.cgroups.name;
    EXPECT_TRUE(FileExists(group_));
  }
  size_t Beats() const {
    const std::string path = attempt_.work() + "/beats";
    return FileExists(path) ? ReadFile(path).size() : 0;
  }
  bool Beat() const {
    const size_t before = Beats();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return Beats() > before;
  }

  TestAttempt attempt_;
  pid_t supervisor_ = 0;
  std::string group_;
};

TEST_P(SupervisorCgroups, AStopEndsAChainThatHandsOn) {
  StartChain();
  RequestStop(attempt_.directory(), 1);
  EXPECT_EQ(attempt_.WaitForEnd().by, EndedBy::kRequest);
  EXPECT_FALSE(Beat());
  EXPECT_FALSE(FileExists(group_));
  EXPECT_EQ(ReadFile(attempt_.directory() + "/supervisor.log"), "");
}

TEST_P(SupervisorCgroups, AChainIsFoundAfterTheSupervisorWasKilled) {
  StartChain();
  kill(supervisor_, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return attempt_.Report().phase == AttemptPhase::kLost; }));
  EXPECT_TRUE(Beat()) << "its supervisor did not die";
  EXPECT_GT(CleanUpAttempt(attempt_.directory()), 0);
  EXPECT_FALSE(Beat());
  EXPECT_FALSE(FileExists(group_));
}

INSTANTIATE_TEST_SUITE_P(Versions, SupervisorCgroups, testing::Values(true, false),
                         [](const auto& of) { return std::string(of.param ? "Two" : "One"); });

// Without groups, its environment is all that a process is found by.
TEST(Supervisor, AChainWithItsEnvironmentIsFoundAfterTheSupervisorWasKilled) {
  TestAttempt attempt("sh link; exec sleep 1000");
  std::ofstream(attempt.work() + "/link") << "echo >> beats; sleep 0.02; setsid sh link &\n";
  const std::string beats = attempt.work() + "/beats";
  const auto size = [&] { return FileExists(beats) ? ReadFile(beats).size() : 0; };
  const pid_t supervisor = attempt.Start();
  ASSERT_TRUE(Eventually([&] { return size() > 10; }));
  kill(supervisor, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kLost; }));
  CleanUpAttempt(attempt.directory());
  const size_t before = size();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(size(), before);
}

std::string Written(const std::vector<CgroupSetting>& settings) {
  std::string text;
  for (const CgroupSetting& setting : settings) text += setting.file + "=" + setting.value + ";";
  return text;
}

TEST(AttemptCgroups, LimitsAreWrittenAsEachVersionHasThem) {
  EXPECT_EQ(Written(CpuSettings(true, 1500)), "cpu.max=150000 100000;");
  EXPECT_EQ(Written(CpuSettings(false, 1500)), "cpu.cfs_period_us=100000;cpu.cfs_quota_us=150000;");
  EXPECT_EQ(Written(CpuSettings(true, 1)), "cpu.max=1000 100000;") << "the kernel allows no less";
  EXPECT_EQ(Written(MemorySettings(true, 64)), "memory.max=67108864;memory.swap.max=0;");
  EXPECT_EQ(Written(MemorySettings(false, 64)),
            "memory.limit_in_bytes=67108864;memory.memsw.limit_in_bytes=67108864;");
}

// The parent may be removed while the daemon runs.
TEST(AttemptCgroups, HoldingIsNotWorthAJob) {
  TemporaryDirectory parent;
  AttemptPlan plan{.workers = {{.node = "n0", .memory_mib = 512}}};
  plan.cgroups.hold = {parent / "gone", true};
  NameCgroups(plan, "/jobs/7/attempt-0");
  AttemptCgroups held(plan);
  EXPECT_NO_THROW(held.Make());
  EXPECT_TRUE(held.entrances().empty());
  EXPECT_EQ(held.Kill(), 0);
  plan.cgroups.memory = plan.cgroups.hold;
  AttemptCgroups limited(plan);
  EXPECT_THROW(limited.Make(), Error) << "it would run without its limit";
}

// The machine's fault: the job is requeued, and none of its retries is used up.
TEST(Supervisor, AJobWhoseLimitCannotBeSetHasNotStarted) {
  TestAttempt attempt("echo ran > ran");
  attempt.plan.cgroups.memory = {attempt.work() + "/gone", true};
  attempt.plan.workers[0].memory_mib = 512;
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kNeverStarted);
  EXPECT_THAT(end.message, HasSubstr("a limit of cgroups.cpu or cgroups.memory cannot be set"));
  EXPECT_FALSE(FileExists(attempt.work() + "/ran"));
}

TEST(AttemptCgroups, NamesTheMemoryThatRanOut) {
  TemporaryDirectory parent;
  AttemptPlan plan{
      .workers = {{.node = "n0", .memory_mib = 512}, {.node = "n1", .memory_mib = 512}}};
  plan.cgroups.memory = {parent.path(), true};
  plan.job = 7;
  NameCgroups(plan, "/jobs/7/attempt-0");
  EXPECT_THAT(plan.cgroups.name, testing::StartsWith("renzan-job-7-attempt-0-"));
  const AttemptCgroups cgroups(plan);
  EXPECT_EQ(cgroups.OutOfMemory(), "");
  const std::string group = parent / plan.cgroups.name;
  CreateDirectories(group);
  std::ofstream(group + "/memory.events") << "low 0\noom 3\noom_kill 2\noom_group_kill 0\n";
  EXPECT_EQ(cgroups.OutOfMemory(),
            "the kernel killed 2 processes of the job, which needed more than the 1GiB of memory "
            "that its workers request together (resources.memory): request more");
  std::ofstream(group + "/memory.events") << "low 0\noom 0\noom_kill 1\noom_group_kill 0\n";
  EXPECT_EQ(cgroups.OutOfMemory(),
            "the kernel killed 1 process of the job, because the machine or a group around the "
            "daemon ran out of memory");
  plan.workers[1].memory_mib = 0;
  EXPECT_EQ(cgroups.OutOfMemory(), "") << "there is no limit";
}

TEST(SupervisorLimits, TheKernelEndsAJobThatNeedsMoreMemoryThanItRequests) {
  const CgroupSupport support = FindCgroupSupport();
  if (!support.memory.why_not.empty()) GTEST_SKIP() << support.memory.why_not;
  TestAttempt attempt("head -c 300M /dev/zero | tail > /dev/null");
  attempt.plan.cgroups.memory = support.memory.group;
  attempt.plan.workers[0].memory_mib = 64;
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.message, HasSubstr("; the kernel killed 1 process of the job, which needed more "
                                     "than the 64MiB of memory that it requests"));
}

TEST(SupervisorLimits, AJobWithinItsLimitsIsNotKilled) {
  const CgroupSupport support = FindCgroupSupport();
  if (const std::string why = support.memory.why_not + support.cpu.why_not; !why.empty())
    GTEST_SKIP() << why;
  TestAttempt attempt("head -c 20M /dev/zero | tail > /dev/null");
  attempt.plan.cgroups.memory = support.memory.group;
  attempt.plan.cgroups.cpu = support.cpu.group;
  attempt.plan.workers[0].memory_mib = 128;
  attempt.plan.workers[0].cpu_millis = 500;
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().message, "all workers ended with exit status 0");
}

TEST(SupervisorLimits, CpuTimeIsLimitedToWhatTheWorkersRequestTogether) {
  const CgroupSupport support = FindCgroupSupport();
  if (!support.cpu.why_not.empty()) GTEST_SKIP() << support.cpu.why_not;
  TestAttempt attempt("sleep 1000");
  attempt.AddWorker("n0", 1);
  for (AttemptPlan::Worker& worker : attempt.plan.workers) worker.cpu_millis = 750;
  attempt.plan.cgroups.cpu = support.cpu.group;
  attempt.Start();
  const AttemptPlan plan = ReadPlan(AttemptPaths(attempt.directory()));
  const std::string group = plan.cgroups.cpu.directory + "/" + plan.cgroups.name;
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  int64_t quota = 0;
  std::ifstream(group + (plan.cgroups.cpu.v2 ? "/cpu.max" : "/cpu.cfs_quota_us")) >> quota;
  EXPECT_EQ(quota, 150'000);
}

// Memory devices stand in for GPUs: /dev/zero for one that it has, /dev/full for another's.
TEST(SupervisorDevices, AJobSeesItsOwnGpusOnlyAndCountsThemFrom0) {
  const CgroupSupport support = FindCgroupSupport();
  if (!support.devices.why_not.empty()) GTEST_SKIP() << support.devices.why_not;
  const auto run = [&](bool held) {
    TestAttempt attempt(
        "for device in zero full; do (: </dev/$device) 2>/dev/null && echo yes || echo no; done "
        ">opens; echo $(cat opens) $CUDA_VISIBLE_DEVICES >seen");
    attempt.plan.workers[0].devices = {3};
    attempt.plan.denied_devices = {makedev(1, 7)};
    attempt.plan.cgroups.devices = support.devices.group;
    if (held) attempt.plan.cgroups.hold = support.hold.group;
    attempt.Start();
    attempt.WaitForEnd();
    EXPECT_EQ(ReadFile(attempt.directory() + "/supervisor.log"), "");
    const AttemptPlan plan = ReadPlan(AttemptPaths(attempt.directory()));
    EXPECT_FALSE(FileExists(support.devices.group.directory + "/" + plan.cgroups.name));
    return attempt.WaitForFile("seen");
  };
  EXPECT_EQ(run(/*held=*/true), "yes no 0\n");
  EXPECT_EQ(run(/*held=*/false), "yes no 0\n");
}

TEST(SupervisorDevices, WithoutAGroupAJobStillRunsAndCountsTheMachinesGpus) {
  TestAttempt attempt("echo $CUDA_VISIBLE_DEVICES >seen");
  attempt.plan.workers[0].devices = {3};
  attempt.plan.denied_devices = {makedev(1, 7)};
  attempt.plan.cgroups.devices = {attempt.work() + "/gone", false};
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_EQ(attempt.WaitForFile("seen"), "3\n");
  EXPECT_THAT(ReadFile(attempt.directory() + "/supervisor.log"),
              HasSubstr("the workers can open GPUs that they were not given: "));
}

}  // namespace
}  // namespace renzan::cluster::local
