#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <variant>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_cgroup.h"

namespace renzan {
namespace {

const dev_t kZero = makedev(1, 5), kFull = makedev(1, 7);

// A real group of each version, where one can be made that denies devices.
class DevicesCgroup : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const Cgroup& own : CgroupsOfThisProcess("devices")) {
      if (own.v2 != GetParam()) continue;
      group_.emplace(Cgroup{fmt::format("{}/renzan-devices-{}", own.directory, getpid()), own.v2});
      break;
    }
    if (!group_) GTEST_SKIP() << "not mounted here";
    try {
      group_->Make();
      group_->Deny({});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override {
    if (!group_) return;
    EXPECT_TRUE(group_->Remove());
  }
  // Of a script that runs in the group.
  std::string OutputOf(const std::string& script) {
    const Descriptor entrance = group_->Entrance();
    const auto started = StartChild({.argv = {"sh", "-c", "( " + script + " ) >output 2>&1"},
                                     .environment = OwnEnvironment(),
                                     .working_directory = dir_.path(),
                                     .cgroups = {entrance.get()}});
    if (!std::holds_alternative<pid_t>(started)) return "not started";
    waitpid(std::get<pid_t>(started), nullptr, 0);
    return ReadFile(dir_ / "output");
  }
  // Whether a process in the group may open these.
  std::string Opens(const std::string& devices) {
    return OutputOf("for device in " + devices +
                    "; do (: <$device) 2>/dev/null && echo yes || echo no; done");
  }

  TemporaryDirectory dir_;
  std::optional<ProcessCgroup> group_;
};

TEST_P(DevicesCgroup, DeniesTheseDevicesAndNoOthers) {
  EXPECT_EQ(Opens("/dev/zero /dev/full /dev/null"), "yes\nyes\nyes\n");
  group_->Deny({kZero, kFull});
  EXPECT_EQ(Opens("/dev/zero /dev/full /dev/null /dev/random"), "no\nno\nyes\nyes\n");
}

TEST_P(DevicesCgroup, GroupsInsideAndNodesOfOnesOwnAreNoWayAround) {
  if (mknod((dir_ / "mine").c_str(), S_IFCHR | 0600, kZero) != 0) GTEST_SKIP() << "not root";
  group_->Deny({kZero});
  EXPECT_EQ(Opens("mine"), "no\n");
  EXPECT_EQ(OutputOf("mknod new c 1 5 2>/dev/null || echo no"), "no\n");
  EXPECT_EQ(OutputOf("mknod new c 1 7 && echo yes"), "yes\n");
  EXPECT_EQ(OutputOf("mknod disk b 1 5 && echo yes"), "yes\n") << "a disk with these numbers";
  EXPECT_EQ(OutputOf(fmt::format("mkdir {0}/inside && echo 0 >{0}/inside/cgroup.procs && "
                                 "((: </dev/zero) 2>/dev/null || echo no)",
                                 group_->directory())),
            "no\n");
}

TEST_P(DevicesCgroup, ADenialThatDoesNothingIsAnError) {
  if (GetParam()) GTEST_SKIP() << "version 1 only";
  ASSERT_EQ(group_->Write("devices.deny", "a"), 0);
  ASSERT_EQ(group_->Write("devices.allow", "c 1:* rwm"), 0);
  EXPECT_EQ(Opens("/dev/zero"), "yes\n");
  EXPECT_THROW(group_->Deny({kZero}), Error);
  EXPECT_EQ(Opens("/dev/zero"), "yes\n");
  ASSERT_EQ(group_->Write("devices.deny", "c 1:* rwm"), 0);
  ASSERT_EQ(group_->Write("devices.allow", "c 1:5 rwm"), 0);
  ASSERT_EQ(group_->Write("devices.allow", "c 1:3 rwm"), 0);
  group_->Deny({kZero});
  EXPECT_EQ(Opens("/dev/zero /dev/null"), "no\nyes\n");
}

INSTANTIATE_TEST_SUITE_P(Versions, DevicesCgroup, testing::Values(true, false),
                         [](const auto& of) { return std::string(of.param ? "Two" : "One"); });

}  // namespace
}  // namespace renzan
