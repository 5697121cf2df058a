#include "renzan/base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

class CpuQuota : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void WriteV2(const std::string& group, const std::string& mount_root) {
    Write("proc/self/cgroup", "0::" + group + "\n");
    Write("proc/self/mountinfo",
          "22 1 0:21 / /proc rw,nosuid - proc proc rw\n"
          "35 22 0:30 " +
              mount_root + " /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n");
  }
  void WriteV1(const std::string& group, const std::string& mount_root) {
    Write("proc/self/cgroup",
          "7:cpuset:" + group + "\n4:cpu,cpuacct:" + group + "\n0::/elsewhere\n");
    Write("proc/self/mountinfo",
          "30 22 0:28 " + mount_root + " /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
              "31 22 0:29 " + mount_root +
              " /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n");
  }
  void TearDown() override {
    for (const char* name : {"RENZAN_CPUS", "RENZAN_ATTEMPT_DIR", "RENZAN_WORKER"}) unsetenv(name);
  }
  CpuBudget Budget() { return ReadCpuBudget(root_.path()); }

  TemporaryDirectory root_;
};

TEST_F(CpuQuota, NoFilesMeanNoLimit) {
  EXPECT_EQ(Budget().quota, kNone);
  EXPECT_EQ(Budget().cgroup, "");
}

TEST_F(CpuQuota, ContainerWithCgroupV2) {
  WriteV2("/", "/");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Budget().quota, 2);
  EXPECT_EQ(Budget().cgroup, "/sys/fs/cgroup");
}

TEST_F(CpuQuota, TightestAncestorWithCgroupV2) {
  WriteV2("/kubepods/pod7/main", "/");
  Write("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/kubepods/pod7/cpu.max", "150000 50000\n");
  Write("sys/fs/cgroup/kubepods/pod7/main/cpu.max", "max 100000\n");
  EXPECT_EQ(Budget().quota, 3);
  EXPECT_EQ(Budget().cgroup, "/sys/fs/cgroup/kubepods/pod7");
}

TEST_F(CpuQuota, NoLimitWithCgroupV2) {
  WriteV2("/user.slice", "/");
  Write("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(Budget().quota, kNone);
}

TEST_F(CpuQuota, GroupWithCgroupV1) {
  WriteV1("/jobs/a", "/");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/a/cpu.cfs_quota_us", "450000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/a/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Budget().quota, 4.5);
  EXPECT_EQ(Budget().cgroup, "/sys/fs/cgroup/cpu,cpuacct/jobs/a");
}

// Docker mounts the container's own group but reports its path on the host.
TEST_F(CpuQuota, ContainerWithCgroupV1) {
  WriteV1("/docker/0abc", "/docker/0abc");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Budget().quota, 0.5);
  EXPECT_EQ(UsableCpus(Budget()), 1);
}

TEST_F(CpuQuota, UnreadableFilesImposeNoLimit) {
  WriteV2("/", "/");
  Write("sys/fs/cgroup/cpu.max", "two of them\n");
  EXPECT_EQ(Budget().quota, kNone);
  Write("proc/self/cgroup", "::::\nnothing\n");
  Write("proc/self/mountinfo", "nothing\n - \n");
  EXPECT_EQ(Budget().quota, kNone);
}

TEST_F(CpuQuota, AJobHasWhatItRequested) {
  EXPECT_EQ(Budget().requested, kNone);
  EXPECT_EQ(Budget().worker, "");
  setenv("RENZAN_ATTEMPT_DIR", "/jobs/1/attempt-0", 1);
  setenv("RENZAN_CPUS", "1.5", 1);
  EXPECT_EQ(Budget().requested, 1.5);
  EXPECT_EQ(Budget().worker, "") << "another job system does not say which worker this is";
  setenv("RENZAN_WORKER", "3", 1);
  EXPECT_EQ(Budget().worker, "/jobs/1/attempt-0 3");
  EXPECT_EQ(UsableCpus(Budget()), 1);
  for (const char* none : {"", "many", "0", "-1"}) {
    setenv("RENZAN_CPUS", none, 1);
    EXPECT_EQ(Budget().requested, kNone) << none;
  }
}

TEST_F(CpuQuota, WholeCpusAreUsable) {
  CpuBudget budget{.allowed = 64,
                   .allowed_list = "0-63",
                   .quota = 2.5,
                   .cgroup = "/g",
                   .requested = kNone,
                   .worker = ""};
  EXPECT_EQ(UsableCpus(budget), 2);
  budget.quota = kNone;
  EXPECT_EQ(UsableCpus(budget), 64);
  budget.quota = 6;
  EXPECT_EQ(UsableCpus(budget, 1, 4, 1), 1);   // different cores, a shared quota
  EXPECT_EQ(UsableCpus(budget, 16, 1, 1), 4);  // the same cores, separate quotas
  EXPECT_EQ(UsableCpus(budget, 100, 100, 100), 1);
  budget.requested = 4.5;
  EXPECT_EQ(UsableCpus(budget), 4);
  EXPECT_EQ(UsableCpus(budget, 16, 1, 1), 4);
  EXPECT_EQ(UsableCpus(budget, 1, 1, 2), 2);  // two processes of one worker of a job
}

TEST(CpuAffinity, IsRespected) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const CpuBudget budget = ReadCpuBudget();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(budget.allowed, 1);
  EXPECT_EQ(budget.allowed_list, std::to_string(first));
  EXPECT_EQ(ReadCpuBudget().allowed, CPU_COUNT(&before));
}

}  // namespace
}  // namespace renzan
