#include "renzan/base/process/start_failure.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

constexpr auto kExec = StartError::Step::kExec;

TEST(StartFailure, IsAShellsStatusAndSaysWhere) {
  const ChildOptions by_name = {.argv = {"trian"}, .environment = {"A=b", "PATH=/usr/bin:/bin"}};
  const StartFailure missing = ExplainStartError({kExec, ENOENT}, by_name, "ann");
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_EQ(missing.message, "program 'trian' is not in PATH (/usr/bin:/bin)");
  const StartFailure forbidden = ExplainStartError({kExec, EACCES}, by_name, "ann");
  EXPECT_EQ(forbidden.exit_code, 126);
  EXPECT_EQ(forbidden.message,
            "user ann has no permission to execute a program 'trian' in PATH (/usr/bin:/bin): "
            "Permission denied");
}

TEST(StartFailure, NamesTheDirectoryOfARelativePath) {
  const ChildOptions options = {.argv = {"./run.sh"}, .working_directory = "/work"};
  EXPECT_EQ(ExplainStartError({kExec, ENOENT}, options, "ann").message,
            "program './run.sh' (relative to /work), or its interpreter, does not exist");
  EXPECT_EQ(ExplainStartError({kExec, ENOEXEC}, options, "ann").message,
            "cannot execute './run.sh' as user ann: Exec format error");
  EXPECT_EQ(ExplainStartError({StartError::Step::kDirectory, ENOENT}, options, "ann").exit_code,
            126);
}

TEST(FindProgram, WithoutPathLooksInTheSystemsFolders) {
  EXPECT_EQ(FindProgram("sh", {"A=b"}), 0);
  EXPECT_EQ(FindProgram("sh", {"PATH=/nonexistent"}), ENOENT);
}

TEST(FindProgram, AgreesWithExec) {
  const TemporaryDirectory first, second;
  std::ofstream(first / "words") << "no program\n";
  std::ofstream(second / "tool") << "#!/bin/sh\n";
  ASSERT_EQ(chmod((first / "words").c_str(), 0600), 0);
  ASSERT_EQ(chmod((second / "tool").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((first / "folder").c_str(), 0700), 0);
  const std::vector<std::string> environment = {"PATH=" + first.path() + "::" + second.path()};
  const struct {
    std::string program;
    int error;
  } cases[] = {
      {"tool", 0},  {"words", EACCES},         {"folder", EACCES},   {"missing", ENOENT},
      {"", ENOENT}, {first / "words", EACCES}, {second / "tool", 0}, {second / "missing", ENOENT}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.program);
    EXPECT_EQ(FindProgram(c.program, environment), c.error);
    const auto started = StartChild({.argv = {c.program}, .environment = environment});
    const auto* failure = std::get_if<StartError>(&started);
    EXPECT_EQ(failure != nullptr ? failure->error : 0, c.error);
    if (failure == nullptr) waitpid(std::get<pid_t>(started), nullptr, 0);
  }
}

}  // namespace
}  // namespace renzan
