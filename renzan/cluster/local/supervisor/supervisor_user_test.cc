// Supervisors that run as root, with workers that do not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr gid_t kGroup = 65534;

bool IsRoot() { return geteuid() == 0; }

// Evaluates the condition in a process of user nobody.
bool AsNobody(const std::function<bool()>& condition) {
  const pid_t pid = fork();
  if (pid == 0) _exit(BecomeUser(LookUpUser(kNobody, kGroup)) && condition() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return status == 0;
}

struct stat Look(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info;
}

TEST(SupervisorUser, WorkersRunAsTheJobsUser) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TestAttempt attempt(
      "id -u; id -g; id -G; echo $USER > /dev/stderr; touch $RENZAN_RUN_DIR/result");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_EQ(attempt.Log(0), "65534\n65534\n65534\nnobody\n");
  EXPECT_EQ(Look(attempt.plan.run_dir).st_uid, kNobody);
  EXPECT_EQ(Look(attempt.plan.run_dir + "/result").st_uid, kNobody);
}

TEST(SupervisorUser, OnlyTheJobsUserCanReadLogsAndNobodyCanCreateFiles) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TestAttempt attempt("echo hello");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  attempt.Start();
  attempt.WaitForEnd();
  const std::string& dir = attempt.directory();
  EXPECT_TRUE(AsNobody([&] { return access((dir + "/worker-0.log").c_str(), R_OK) == 0; }));
  EXPECT_FALSE(AsNobody([&] { return access(dir.c_str(), W_OK) == 0; }));
  for (const char* name : {"/plan.json", "/end.json", "/lock", "/supervisor.log", "/requests"})
    EXPECT_FALSE(AsNobody([&] { return access((dir + name).c_str(), R_OK) == 0; })) << name;
  EXPECT_EQ(Look(dir).st_mode & 07777, 0750u);
  EXPECT_EQ(Look(dir + "/worker-0.log").st_mode & 07777, 0600u);
}

TEST(SupervisorUser, CreatesDirectoriesWhereTheUserLacksPermission) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TemporaryDirectory ours;
  chmod(ours.path().c_str(), 0711);
  TestAttempt attempt("touch $RENZAN_CHECKPOINT_DIR/step");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  attempt.plan.checkpoint_dir = ours / "checkpoints";
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_EQ(Look(ours / "checkpoints").st_uid, kNobody);
}

TEST(SupervisorUser, EnforcesMemoryOfOtherUsersWorkers) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TestAttempt attempt("cat /proc/self/oom_score_adj; (head -c 200M /dev/zero; sleep 1000) | tail");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  attempt.plan.enforce_memory = true;
  attempt.plan.workers[0].memory_mib = 64;
  attempt.Start();
  EXPECT_THAT(attempt.WaitForEnd().message, HasSubstr("more than the 64MiB"));
  EXPECT_GE(std::stoi(attempt.Log(0)), 500);
}

TEST(SupervisorUser, NamesADirectoryThatTheUserCannotEnter) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TemporaryDirectory ours;  // mode 0700
  TestAttempt attempt("true");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  attempt.plan.working_directory = ours.path();
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kCannotStart);
  EXPECT_THAT(end.message, HasSubstr(ours.path() + " as user nobody: Permission denied"));
}

TEST(SupervisorUser, KillsProcessesThatAUserLeftBehind) {
  if (!IsRoot()) GTEST_SKIP() << "only root can run workers as another user";
  TestAttempt attempt("setsid sleep 1000 & echo $! > detached; echo $$ > worker; exec sleep 1000");
  attempt.plan.uid = kNobody;
  attempt.plan.gid = kGroup;
  const pid_t supervisor = attempt.Start();
  const pid_t worker = std::stoi(attempt.WaitForFile("worker"));
  const pid_t detached = std::stoi(attempt.WaitForFile("detached"));
  kill(supervisor, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !IsAlive(worker); }));
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kLost; }));
  EXPECT_EQ(CleanUpAttempt(attempt.directory()), 1);
  EXPECT_FALSE(IsAlive(detached));
}

TEST(SupervisorUser, RefusesADirectoryOfAnotherUser) {
  if (!IsRoot()) GTEST_SKIP() << "only root can change the owner of a directory";
  TestAttempt attempt("true");
  CreateDirectories(attempt.directory());
  ASSERT_EQ(chown(attempt.directory().c_str(), kNobody, kGroup), 0);
  EXPECT_THROW(attempt.Start(), Error);
  ASSERT_EQ(chown(attempt.directory().c_str(), 0, 0), 0);
}

TEST(SupervisorUser, OnlyRootRunsJobsOfOtherUsers) {
  if (IsRoot()) GTEST_SKIP() << "root can";
  TestAttempt attempt("true");
  attempt.plan.uid = geteuid() + 1;
  try {
    attempt.Start();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("runs as root"));
  }
}

TEST(JobUser, AUserWithoutANameIsNamedByTheNumber) {
  const JobUser user = LookUpUser(3999999, 3999998);
  EXPECT_EQ(user.name, "uid-3999999");
  EXPECT_EQ(UserName(3999999), user.name) << "or caps would not apply";
  EXPECT_EQ(UserName(0), "root");
  EXPECT_EQ(user.home, "/");
  EXPECT_THAT(user.groups, testing::ElementsAre(3999998));
}

}  // namespace
}  // namespace renzan::cluster::local
