#include "renzan/base/process/process_cgroup_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using testing::HasSubstr;

class CgroupSupportFiles : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  CgroupSupport Find() { return FindCgroupSupport({.parent = "", .root = root_.path()}); }

  TemporaryDirectory root_;
};

TEST_F(CgroupSupportFiles, NothingIsMounted) {
  const CgroupSupport support = Find();
  EXPECT_EQ(support.hold.group.directory, "");
  EXPECT_THAT(support.hold.why_not, HasSubstr("is mounted"));
  EXPECT_EQ(support.cpu.why_not, "no controller cpu is available");
  EXPECT_EQ(support.memory.why_not, "no controller memory is available");
  EXPECT_THAT(support.devices.why_not, HasSubstr("is mounted"));
}

TEST_F(CgroupSupportFiles, SaysWhyEachIsMissing) {
  Write("proc/self/cgroup", "4:freezer:/own\n0::/own\n");
  Write("proc/self/mountinfo",
        "35 22 0:30 / /cgroup2 rw - cgroup2 cgroup2 rw\n"
        "36 22 0:31 / /freezer rw - cgroup cgroup rw,freezer\n");
  Write("cgroup2/own/cgroup.controllers", "cpuset cpu memory\n");
  Write("cgroup2/own/cgroup.subtree_control", "memory");
  std::filesystem::create_directories(root_ / "freezer/own");
  const CgroupSupport support = Find();
  const std::string own = root_ / "cgroup2/own";
  // Directories that are no groups.
  EXPECT_EQ(support.hold.why_not, fmt::format("groups in {} have no cgroup.events", own));
  EXPECT_EQ(support.cpu.why_not,
            fmt::format("controller cpu is not enabled for groups in {}", own));
  EXPECT_EQ(support.memory.why_not, fmt::format("groups in {} have no memory.max", own));
  EXPECT_THAT(support.devices.why_not, HasSubstr("a BPF program"));
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "freezer/own")) << "the probe was left";
}

TEST_F(CgroupSupportFiles, EnablesControllersIfAllowed) {
  Write("given/cgroup.controllers", "cpu\n");
  Write("given/cgroup.subtree_control", "");
  const CgroupSupport support =
      FindCgroupSupport({.parent = root_ / "given", .enable = true, .root = root_.path()});
  EXPECT_EQ(ReadFile(root_ / "given/cgroup.subtree_control"), "+cpu");
  EXPECT_THAT(support.cpu.why_not, HasSubstr("have no cpu.max"));
}

TEST_F(CgroupSupportFiles, RefusesAParentThatIsNone) {
  try {
    FindCgroupSupport({.parent = root_.path(), .root = root_.path()});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("is no control group of version 2"));
  }
}

TEST(CgroupSupport, WhatIsFoundCanBeUsed) {
  const CgroupSupport support = FindCgroupSupport();
  for (const CgroupSupport::Parent* parent :
       {&support.hold, &support.cpu, &support.memory, &support.devices}) {
    EXPECT_NE(parent->group.directory.empty(), parent->why_not.empty());
    if (!parent->why_not.empty()) continue;
    const std::string inside = fmt::format("{}/renzan-test-{}", parent->group.directory, getpid());
    EXPECT_TRUE(std::filesystem::create_directory(inside));
    EXPECT_EQ(rmdir(inside.c_str()), 0);
  }
}

}  // namespace
}  // namespace renzan
