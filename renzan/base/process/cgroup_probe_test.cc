#include "renzan/base/process/cgroup_probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/base/process/process_cgroup_support.h"
#include "renzan/base/process/process_table.h"

namespace renzan {
namespace {

using testing::UnorderedElementsAre;

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

// The name of a group that the process could have made.
std::string NameOf(pid_t pid) {
  std::string name = NewProbeName();
  const std::string own = fmt::format("-{}-{}-", getpid(), StartTicksOf(getpid()).value());
  const size_t at = name.find(own);
  EXPECT_NE(at, std::string::npos) << name;
  return name.replace(at, own.size(), fmt::format("-{}-{}-", pid, StartTicksOf(pid).value()));
}

TEST(CgroupProbe, EachHasANameOfItsOwn) { EXPECT_NE(NewProbeName(), NewProbeName()); }

TEST(CgroupProbe, RemovesEmptyOnesWhoseProcessHasEnded) {
  const TemporaryDirectory parent;
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  const std::string left = NameOf(child), full = NameOf(child), own = NewProbeName();
  // A process of the same id that has ended before this one started.
  const std::string reused =
      fmt::format("{}-1-1", own.substr(0, own.find(fmt::format("-{}-", getpid())) + 1) +
                                std::to_string(getpid()));
  // Of another namespace: the process may be alive.
  const std::string foreign = "renzan-probe-1-2147483647-1-1";
  for (const std::string& name : {left, full, own, reused, foreign, std::string("renzan-7")})
    std::filesystem::create_directory(parent / name);
  std::filesystem::create_directory(parent / full + "/inside");
  RemoveLeftProbes(parent.path());
  EXPECT_THAT(NamesIn(parent.path()), UnorderedElementsAre(left, full, own, foreign, "renzan-7"))
      << "processes that are alive use theirs";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  RemoveLeftProbes(parent.path());
  EXPECT_THAT(NamesIn(parent.path()), UnorderedElementsAre(full, own, foreign, "renzan-7"));
}

// In the real hierarchies, where this process may make groups.
TEST(CgroupProbe, WhoeverLooksForSupportRemovesWhatAKilledProcessLeft) {
  const CgroupSupport::Parent hold = FindCgroupSupport().hold;
  if (hold.group.directory.empty()) GTEST_SKIP() << hold.why_not;
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  const std::string left = hold.group.directory + "/" + NameOf(child);
  ASSERT_TRUE(std::filesystem::create_directory(left));
  FindCgroupSupport();
  EXPECT_TRUE(std::filesystem::exists(left));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  FindCgroupSupport();
  EXPECT_FALSE(std::filesystem::exists(left));
}

}  // namespace
}  // namespace renzan
