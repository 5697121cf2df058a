#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "renzan/base/file/file.h"
#include "renzan/base/host.h"
#include "renzan/base/memory_budget.h"
#include "renzan/base/oom_kills.h"
#include "renzan/cli/machine/control_groups.h"
#include "renzan/cli/machine/disk.h"
#include "renzan/cli/machine/gpus.h"
#include "renzan/cli/machine/kubernetes.h"
#include "renzan/cli/machine/memory_finding.h"
#include "renzan/cli/machine/network.h"
#include "renzan/cli/machine/processor.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using State = Finding::State;

// A directory that stands in for the root of a file system.
class Machine : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ / path).parent_path());
    WriteFileAtomically(root_ / path, text);
  }
  std::string root() const { return dir_.path(); }

  TemporaryDirectory dir_;
  std::filesystem::path root_ = dir_.path();
};

constexpr const char* kMemInfo =
    "MemTotal:        8388608 kB\nMemFree:  1000 kB\nMemAvailable:    4194304 kB\n";
constexpr const char* kMounts =
    "29 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(Machine, WithoutACgroupAllMemoryIsUsable) {
  Write("proc/meminfo", kMemInfo);
  const MemoryBudget budget = ReadMemoryBudget(root());
  EXPECT_EQ(budget.bytes, int64_t{8} << 30);
  EXPECT_EQ(budget.available, int64_t{4} << 30);
  EXPECT_EQ(budget.limit, budget.bytes);
  EXPECT_EQ(budget.room, budget.available);
  EXPECT_EQ(FindMemory(root()).state, State::kGood);
}

TEST_F(Machine, TheStrictestLimitOfAllAncestorCgroupsApplies) {
  Write("proc/meminfo", kMemInfo);
  Write("proc/self/mountinfo", kMounts);
  Write("proc/self/cgroup", "0::/team/job\n");
  Write("sys/fs/cgroup/team/job/memory.max", "max\n");
  Write("sys/fs/cgroup/team/memory.max", "1073741824\n");
  const MemoryBudget budget = ReadMemoryBudget(root());
  EXPECT_EQ(budget.limit, int64_t{1} << 30);
  EXPECT_EQ(budget.cgroup, "/sys/fs/cgroup/team");
  EXPECT_EQ(budget.room, int64_t{1} << 30);
  EXPECT_EQ(budget.room_cgroup, "/sys/fs/cgroup/team");
  // The page cache can be dropped.
  Write("sys/fs/cgroup/team/memory.current", "900000000\n");
  Write("sys/fs/cgroup/team/memory.stat",
        "anon 500000000\nfile 400000000\ninactive_file 300000000\nactive_file 100000000\n");
  EXPECT_EQ(ReadMemoryBudget(root()).room, (int64_t{1} << 30) - 500000000);
  EXPECT_EQ(FindMemory(root()).state, State::kLimited);
  EXPECT_THAT(FindMemory(root()).here, HasSubstr("a limit of 1GiB (/sys/fs/cgroup/team)"));
}

TEST_F(Machine, CgroupV1HasAHugeLimitForNoLimit) {
  Write("proc/meminfo", kMemInfo);
  Write("proc/self/mountinfo", "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  Write("proc/self/cgroup", "9:memory:/box\n8:cpu,cpuacct:/\n");
  Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(ReadMemoryBudget(root()).limit, int64_t{8} << 30);
  Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(ReadMemoryBudget(root()).limit, int64_t{512} << 20);
}

TEST_F(Machine, CountsProcessesKilledForMemoryWhereTheyAreCounted) {
  EXPECT_EQ(OomKills(root()), 0);
  Write("proc/vmstat", "nr_free_pages 7\noom_kill 5\n");
  EXPECT_EQ(OomKills(root()), 5);
  Write("proc/self/mountinfo", kMounts);
  Write("proc/self/cgroup", "0::/team/job\n");
  Write("sys/fs/cgroup/team/job/memory.max", "max\n");
  Write("sys/fs/cgroup/team/job/memory.events.local", "low 0\noom 3\noom_kill 2\n");
  EXPECT_EQ(OomKills(root()), 2);
}

TEST(ControlGroups, WhatIsMissingIsNamedWithAdvice) {
  const CgroupSupport::Parent there{.group = {"/groups/own", true}, .why_not = ""};
  const auto missing = [](const std::string& why) {
    return CgroupSupport::Parent{.group = {}, .why_not = why};
  };
  Finding finding = FindControlGroups({there, there, there, missing("no right")}, false);
  EXPECT_EQ(finding.state, State::kGood);
  EXPECT_EQ(finding.here,
            "hold jobs' processes in /groups/own; limits: cgroups.cpu, cgroups.memory");
  finding = FindControlGroups({there, missing("no cpu"), there, there}, false);
  EXPECT_EQ(finding.state, State::kLimited);
  EXPECT_EQ(finding.here, "hold jobs' processes in /groups/own; no cpu; limits: cgroups.memory");
  EXPECT_THAT(finding.advice, HasSubstr("cgroups.parent"));
  finding = FindControlGroups({there, there, there, there}, true);
  EXPECT_EQ(finding.state, State::kGood);
  EXPECT_THAT(finding.here, HasSubstr("; keep jobs from GPUs that they are not given"));
  finding = FindControlGroups({there, there, there, missing("no right")}, true);
  EXPECT_EQ(finding.state, State::kLimited);
  EXPECT_THAT(finding.here, HasSubstr("; do not keep jobs from others' GPUs: no right"));
  EXPECT_THAT(finding.advice, HasSubstr("as root"));
  finding = FindControlGroups({missing("not delegated"), there, there, there}, true);
  EXPECT_EQ(finding.state, State::kMissing);
  EXPECT_EQ(finding.here, "not delegated");
  EXPECT_THAT(finding.advice, HasSubstr("Delegate=yes"));
}

TEST_F(Machine, ACpuQuotaIsShownWithItsCgroup) {
  Write("proc/self/mountinfo", kMounts);
  Write("proc/self/cgroup", "0::/box\n");
  Write("sys/fs/cgroup/box/cpu.max", "50000 100000\n");
  const Finding finding = FindCores(root());
  EXPECT_EQ(finding.state, State::kLimited);
  EXPECT_THAT(finding.here, HasSubstr("a quota of 0.5 (/sys/fs/cgroup/box)"));
}

TEST_F(Machine, InstructionSets) {
  EXPECT_EQ(FindInstructionSet("avx512").state, State::kGood);
  EXPECT_EQ(FindInstructionSet("sse4").state, State::kLimited);
  Write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu avx512f amx_bf16 amx_tile amx_int8\n");
  EXPECT_EQ(FindAmx(root()).here, "amx_bf16, amx_tile, amx_int8");
  Write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu\n");
  EXPECT_EQ(FindAmx(root()).state, State::kMissing);
}

TEST_F(Machine, GpusAreCountedAndNamed) {
  EXPECT_EQ(FindGpus(root()).state, State::kMissing);
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"})
    Write(std::string("dev/") + name, "");
  EXPECT_EQ(std::ssize(GpuDevices(root())), 2);
  EXPECT_EQ(FindGpus(root()).here, "2");
  for (const char* bus : {"0000:18:00.0", "0000:2a:00.0"})
    Write(std::string("proc/driver/nvidia/gpus/") + bus + "/information",
          "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\n");
  EXPECT_EQ(FindGpus(root()).here, "2 x NVIDIA H200");
}

TEST_F(Machine, MpirunIsSearchedInThePath) {
  EXPECT_EQ(FindMpi("Open MPI v4.1.4", root() + "/none:").state, State::kMissing);
  Write("bin/mpirun", "");
  std::filesystem::permissions(root_ / "bin/mpirun", std::filesystem::perms::owner_all);
  const Finding finding = FindMpi("Open MPI v4.1.4", root() + "/none:" + root() + "/bin");
  EXPECT_EQ(finding.state, State::kGood);
  EXPECT_EQ(finding.here, "Open MPI v4.1.4, " + root() + "/bin/mpirun");
}

TEST_F(Machine, AMissingInterfaceIsNamed) {
  EXPECT_EQ(FindGlooInterface("none0").state, State::kMissing);
  EXPECT_THAT(FindGlooInterface("none0").advice, HasSubstr("none0"));
  EXPECT_THAT(FindGlooInterface("lo").here, HasSubstr("127.0.0.1"));
}

TEST_F(Machine, ADiskIsMeasuredAndLeftUnchanged) {
  const Finding finding = FindDisk(root(), SystemClock());
  EXPECT_THAT(finding.here, HasSubstr("MB/s written and synced"));
  EXPECT_TRUE(std::filesystem::is_empty(root()));
  EXPECT_EQ(FindDisk(root() + "/none", SystemClock()).state, State::kMissing);
}

class Kubernetes : public Machine {
 protected:
  std::optional<KubernetesServer> Find() {
    return FindKubernetesServer([this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::map<std::string, std::string> variables_;
};

constexpr const char* kConfig =
    "current-context: two\n"
    "contexts:\n"
    "- {name: one, context: {cluster: a}}\n"
    "- {name: two, context: {cluster: b}}\n"
    "clusters:\n"
    "- {name: a, cluster: {server: 'https://a'}}\n"
    "- {name: b, cluster: {server: 'https://b', certificate-authority-data: 'UEVN',\n"
    "                      certificate-authority: ca.crt}}\n";

TEST_F(Kubernetes, IsNotContactedUnlessConfigured) {
  EXPECT_FALSE(Find());
  variables_["HOME"] = root();
  EXPECT_FALSE(Find());
  EXPECT_EQ(FindKubernetes(std::nullopt).here, "not configured (no kubeconfig)");
}

TEST_F(Kubernetes, UsesTheCurrentContext) {
  Write(".kube/config", kConfig);
  variables_["HOME"] = root();
  const auto server = Find();
  ASSERT_TRUE(server);
  EXPECT_EQ(server->url, "https://b");
  EXPECT_EQ(server->ca_pem, "PEM");
  EXPECT_EQ(server->ca_file, root() + "/.kube/ca.crt");
  EXPECT_TRUE(server->verify);
  Write("other", "clusters: []");
  variables_["KUBECONFIG"] = root() + "/none:" + root() + "/other";
  EXPECT_THAT(Find()->error, HasSubstr("no current-context"));
  Write("other", "{ broken");
  EXPECT_EQ(FindKubernetes(Find()).state, State::kMissing);
}

TEST_F(Kubernetes, APodUsesItsEnvironmentVariables) {
  variables_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "6443"}};
  EXPECT_EQ(Find()->url, "https://10.0.0.1:6443");
}

}  // namespace
}  // namespace renzan
