// Attempts with real supervisors and real workers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A script that creates the file `ready` once it handles SIGTERM and SIGUSR1, then waits.
std::string Obedient(const std::string& on_term) {
  return "trap '" + on_term +
         "' TERM; trap 'echo checkpoint > checkpoint' USR1; echo up > ready.tmp; mv ready.tmp "
         "ready; while :; do sleep 0.01; done";
}
const std::string kStubborn = "trap '' TERM; echo up > ready; while :; do sleep 0.01; done";

TEST(Supervisor, Succeeds) {
  TestAttempt attempt("echo hello; echo trouble >&2");
  EXPECT_EQ(attempt.Report().phase, AttemptPhase::kNone);
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kItself);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(attempt.Log(0), "hello\ntrouble\n");
  EXPECT_LE(end.started_ms, end.ended_ms);
  EXPECT_EQ(attempt.Report().phase, AttemptPhase::kEnded);
}

// Until then its starter may not have begun to watch its process id, which must not be reused.
TEST(Supervisor, IsNotReapedBeforeAReport) {
  TestAttempt first("true"), second("true");
  const pid_t supervisor = first.Start();
  ASSERT_TRUE(Eventually([&] { return !IsAlive(supervisor); }));
  second.Start();
  siginfo_t how{};
  EXPECT_EQ(waitid(P_PID, supervisor, &how, WEXITED | WNOHANG | WNOWAIT), 0);
  first.WaitForEnd();
  EXPECT_NE(waitid(P_PID, supervisor, &how, WEXITED | WNOHANG | WNOWAIT), 0);
}

// The daemon is killed while it starts a supervisor, which then cannot report that it is ready.
TEST(Supervisor, RunsWhenTheDaemonDiesDuringTheStart) {
  TestAttempt attempt("echo done");
  const std::string program = attempt.work() + "/supervisor";
  WriteFileAtomically(program, "#!/bin/sh\ncd " + attempt.work() +
                                   "\n>begun\nwhile [ ! -e go ]; do sleep 0.01; done\n"
                                   "exec " RENZAN_SUPERVISOR " \"$@\"\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    StartAttempt(program, attempt.directory(), attempt.plan);
    _exit(0);
  }
  ASSERT_TRUE(Eventually([&] { return FileExists(attempt.work() + "/begun"); }));
  ASSERT_EQ(kill(daemon, SIGKILL), 0);
  ASSERT_EQ(waitpid(daemon, nullptr, 0), daemon);
  WriteFileAtomically(attempt.work() + "/go", "");
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_EQ(attempt.Log(0), "done\n");
  EXPECT_EQ(ReadFile(attempt.directory() + "/supervisor.log"), "");  // no errors
}

TEST(Supervisor, TreatsACorruptEndLikeAMissingOne) {
  TestAttempt attempt("true");
  attempt.Start();
  attempt.WaitForEnd();
  ASSERT_TRUE(Eventually([&] { return attempt.Report().supervisor == 0; }));
  for (const char* corrupt : {"", "{", "[]", "{\"by\": \"magic\"}"}) {
    WriteFileAtomically(attempt.directory() + "/end.json", corrupt);
    const AttemptReport report = attempt.Report();
    EXPECT_EQ(report.phase, AttemptPhase::kLost) << corrupt;
    EXPECT_FALSE(report.end.has_value());
  }
}

TEST(Supervisor, IgnoresInvalidRequests) {
  TestAttempt attempt(Obedient("exit 75"));
  attempt.Start();
  attempt.WaitForFile("ready");
  CreateDirectories(attempt.directory() + "/requests/0.request");  // a directory
  WriteFileAtomically(attempt.directory() + "/requests/1.request", "{\"request\": \"dance\"}");
  RequestStop(attempt.directory(), 1000);
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 75);
}

TEST(Supervisor, WritesTheRealDeadlineOfAStop) {
  TestAttempt attempt(
      "trap 'cat \"$RENZAN_RUN_DIR/stop.json\" >> heard.tmp; cp heard.tmp heard' TERM; "
      "(ls \"$RENZAN_RUN_DIR\"; echo up) > ready.tmp; mv ready.tmp ready; "
      "while ! grep -q 'seconds\": 4' heard.tmp 2>&1; do sleep 0.01; done; exit 75");
  attempt.plan.saves_on_stop = true;
  CreateDirectories(attempt.plan.run_dir);
  WriteFileAtomically(attempt.plan.run_dir + "/stop.json", "of an earlier attempt");
  attempt.Start();
  EXPECT_THAT(attempt.WaitForFile("ready"), Not(HasSubstr("stop.json")));
  RequestStop(attempt.directory(), 600);
  EXPECT_THAT(attempt.WaitForFile("heard"), HasSubstr("\"grace_seconds\": 600.000"));
  RequestStop(attempt.directory(), 400);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.exit_code, 75);
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(end.killed_after_seconds, 0);
}

TEST(Supervisor, DoesNotFollowALinkInPlaceOfTheStopNotice) {
  TestAttempt attempt(Obedient("exit 75"));
  CreateDirectories(attempt.plan.run_dir);
  WriteFileAtomically(attempt.work() + "/precious", "precious");
  attempt.Start();
  attempt.WaitForFile("ready");
  for (const char* name : {"/stop.json", "/.stop.json.new"})
    ASSERT_EQ(
        symlink((attempt.work() + "/precious").c_str(), (attempt.plan.run_dir + name).c_str()), 0);
  RequestStop(attempt.directory(), 600);
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 75);
  EXPECT_EQ(ReadFile(attempt.work() + "/precious"), "precious");
  EXPECT_THAT(ReadFile(attempt.plan.run_dir + "/stop.json"), HasSubstr("600.000"));
}

TEST(Supervisor, ReportsExitCodesAndSignals) {
  TestAttempt exits("exit 42");
  exits.Start();
  EXPECT_EQ(exits.WaitForEnd().exit_code, 42);
  EXPECT_EQ(exits.WaitForEnd().message, "worker 0 on n0 ended with exit status 42");

  TestAttempt dies("kill -SEGV $$");
  dies.Start();
  const AttemptEnd end = dies.WaitForEnd();
  EXPECT_EQ(end.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(end.workers[0].signal, SIGSEGV);
}

TEST(Supervisor, ReportsProcessIdsWhileRunning) {
  TestAttempt attempt("echo $$ > pid; echo up > ready; sleep 1000");
  const pid_t supervisor = attempt.Start();
  attempt.WaitForFile("ready");
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  const AttemptReport report = attempt.Report();
  EXPECT_EQ(report.supervisor, supervisor);
  EXPECT_THAT(report.worker_pids, ElementsAre(std::stoi(attempt.WaitForFile("pid"))));
  EXPECT_EQ(getsid(supervisor), supervisor);
  EXPECT_EQ(getsid(report.worker_pids[0]), report.worker_pids[0]);
}

TEST(Supervisor, ReportsTheExitCodeOfAStoppedWorker) {
  TestAttempt attempt(Obedient("exit 75"));
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestStop(attempt.directory(), 1000);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(end.exit_code, 75);
}

TEST(Supervisor, KillsAWorkerThatDoesNotStopInTime) {
  TestAttempt attempt(kStubborn);
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestStop(attempt.directory(), 0.05);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_THAT(end.message, HasSubstr("did not end within 0.05 s and was killed"));
}

TEST(Supervisor, AGracePeriodCanBeShortened) {
  TestAttempt attempt(kStubborn);
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestStop(attempt.directory(), 1e6);
  RequestStop(attempt.directory(), 0.05);
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 137);
}

TEST(Supervisor, SendsSigtermToTheMainProcessOnly) {
  TestAttempt attempt(
      "sh -c 'trap \"echo child > child\" TERM; echo up > child-ready; "
      "while :; do sleep 0.01; done' & "
      "while ! [ -e child-ready ]; do sleep 0.01; done; " +
      Obedient("exit 75"));
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestStop(attempt.directory(), 1000);
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 75);
  EXPECT_FALSE(FileExists(attempt.work() + "/child"));
}

TEST(Supervisor, StopsWithThePlansGraceOnSigterm) {
  TestAttempt attempt(kStubborn);
  attempt.plan.grace_seconds = 0.05;
  const pid_t supervisor = attempt.Start();
  attempt.WaitForFile("ready");
  kill(supervisor, SIGTERM);
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kRequest);
  EXPECT_EQ(end.exit_code, 137);
}

TEST(Supervisor, HandlesARequestFromBeforeItsStart) {
  TestAttempt attempt("sleep 1000");
  attempt.Start();
  RequestStop(attempt.directory(), 0);  // most likely before any worker has started
  EXPECT_EQ(attempt.WaitForEnd().by, EndedBy::kRequest);
}

TEST(Supervisor, SendsCheckpointRequestsToWorkersThatHandleThem) {
  TestAttempt attempt(Obedient("exit 75"));
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestCheckpoint(attempt.directory());
  EXPECT_EQ(attempt.WaitForFile("checkpoint"), "checkpoint\n");
}

TEST(Supervisor, DoesNotSendCheckpointRequestsToOtherWorkers) {
  TestAttempt attempt("echo up > ready; while ! [ -e go ]; do sleep 0.01; done; exit 3");
  attempt.Start();
  attempt.WaitForFile("ready");
  RequestCheckpoint(attempt.directory());
  ASSERT_TRUE(Eventually([&] {
    return ReadFile(attempt.directory() + "/supervisor.log").find("SIGUSR1") != std::string::npos;
  }));
  std::ofstream(attempt.work() + "/go") << "go\n";
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 3);
}

TEST(Supervisor, EndsTheAttemptAfterTheTimeout) {
  TestAttempt attempt(Obedient("exit 75"));
  attempt.plan.timeout_ms = 300;
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kTimeout);
  EXPECT_THAT(end.message, HasSubstr("its timeout of 0.3 s"));
}

TEST(Supervisor, EndsTheGangWhenAWorkerFails) {
  TestAttempt attempt("if [ $RANK = 1 ]; then exit 5; fi; exec sleep 1000");
  attempt.AddWorker("n1", 0);
  attempt.AddWorker("n1", 1);
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_EQ(end.message, "worker 1 on n1 ended with exit status 5");
  EXPECT_EQ(end.workers[0].signal, SIGTERM);
  EXPECT_EQ(end.workers[1].exit_code, 5);
  EXPECT_EQ(end.workers[2].exit_code, 128 + SIGTERM);
}

TEST(Supervisor, AllowsAWorkerToSucceedEarly) {
  TestAttempt attempt(
      "if [ $RANK = 1 ]; then exit 0; fi; while ! [ -e go ]; do sleep 0.01; done; echo done");
  attempt.AddWorker("n0", 1);
  attempt.Start();
  std::ofstream(attempt.work() + "/go") << "go\n";
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kItself);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(attempt.Log(0), "done\n");
}

TEST(Supervisor, KillsWorkersOfAFailedNodeWithoutNotice) {
  TestAttempt attempt(
      "trap 'echo asked > asked-$RANK; exit 75' TERM; echo up > ready-$RANK; "
      "while :; do sleep 0.01; done");
  attempt.AddWorker("n1", 0);
  attempt.Start();
  attempt.WaitForFile("ready-0");
  attempt.WaitForFile("ready-1");
  ReportNodeFailed(attempt.directory(), "n1");
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kNodeFailed);
  EXPECT_EQ(end.message, "node n1 failed");
  EXPECT_EQ(end.workers[0].exit_code, 75);
  EXPECT_EQ(end.workers[1].signal, SIGKILL);
  EXPECT_TRUE(FileExists(attempt.work() + "/asked-0"));
  EXPECT_FALSE(FileExists(attempt.work() + "/asked-1"));
}

TEST(Supervisor, ExplainsWhyAWorkerCannotStart) {
  TestAttempt no_program("");
  no_program.plan.command = {"no-such-program", "argument"};
  no_program.plan.environment = {{"PATH", "/usr/bin:/bin"}};
  no_program.Start();
  AttemptEnd end = no_program.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kCannotStart);
  EXPECT_EQ(end.exit_code, 127);
  EXPECT_THAT(end.message,
              HasSubstr("worker 0 on n0: program 'no-such-program' is not in PATH (/"));

  TestAttempt no_directory("true");
  no_directory.plan.working_directory = "/no/such/place";
  no_directory.Start();
  end = no_directory.WaitForEnd();
  EXPECT_EQ(end.exit_code, 126);
  EXPECT_THAT(end.message, HasSubstr("working directory /no/such/place"));

  TestAttempt no_permission("");
  no_permission.plan.command = {"/etc/passwd"};
  no_permission.Start();
  end = no_permission.WaitForEnd();
  EXPECT_EQ(end.exit_code, 126);
  EXPECT_THAT(end.message, HasSubstr("'/etc/passwd' as user"));
  EXPECT_THAT(end.message, HasSubstr("Permission denied"));
}

TEST(Supervisor, KillsAllWorkersWhenOneCannotStart) {
  // The first worker that runs writes its process id and deletes the program.
  TestAttempt attempt("");
  const std::string program = attempt.work() + "/program";
  std::ofstream(program) << "#!/bin/sh\necho $$ > $$; mv $$ first; rm -f \"$0\"; exec sleep 1000\n";
  chmod(program.c_str(), 0755);
  attempt.plan.command = {program};
  for (int rank = 1; rank < 200; ++rank) attempt.AddWorker("n0", rank);
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  ASSERT_EQ(end.by, EndedBy::kCannotStart);
  EXPECT_EQ(end.exit_code, 127);
  EXPECT_FALSE(IsAlive(std::stoi(attempt.WaitForFile("first"))));
}

TEST(Supervisor, KillsProcessesThatWorkersLeaveBehind) {
  TestAttempt attempt(
      "setsid sh -c 'setsid sleep 1000 & echo $! $$ > pids.tmp; mv pids.tmp pids; "
      "exec sleep 1000' & while ! [ -e pids ]; do sleep 0.01; done");
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  std::istringstream pids(attempt.WaitForFile("pids"));
  pid_t first = 0, second = 0;
  pids >> first >> second;
  ASSERT_GT(first, 0);
  ASSERT_GT(second, 0);
  EXPECT_FALSE(IsAlive(first));
  EXPECT_FALSE(IsAlive(second));
}

TEST(Supervisor, LosesNoOutput) {
  TestAttempt attempt("seq 1 500000");
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  const std::string log = attempt.Log(0);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 500000);
  EXPECT_TRUE(log.ends_with("\n499999\n500000\n"));
}

TEST(Supervisor, WorkersDieWithAKilledSupervisor) {
  TestAttempt attempt("setsid sleep 1000 & echo $! > detached; echo $$ > worker; exec sleep 1000");
  const pid_t supervisor = attempt.Start();
  const pid_t worker = std::stoi(attempt.WaitForFile("worker"));
  const pid_t detached = std::stoi(attempt.WaitForFile("detached"));
  EXPECT_EQ(CleanUpAttempt(attempt.directory()), 0) << "its supervisor is still alive";
  kill(supervisor, SIGKILL);
  // The process that is still alive did not inherit the lock.
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kLost; }));
  EXPECT_TRUE(Eventually([&] { return !IsAlive(worker); }));
  ASSERT_TRUE(IsAlive(detached));
  EXPECT_EQ(CleanUpAttempt(attempt.directory()), 1);
  EXPECT_FALSE(IsAlive(detached));
  EXPECT_EQ(attempt.Report().supervisor, 0);
}

TEST(Supervisor, WorkersInheritNothingButTheirOutput) {
  TestAttempt attempt("ls -l /proc/$$/fd; exec 7</dev/null");
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  const std::string list = attempt.Log(0);
  EXPECT_THAT(list, HasSubstr(" 0 -> /dev/null"));
  EXPECT_THAT(list, testing::ContainsRegex(" 1 -> pipe:"));
  EXPECT_THAT(list, testing::ContainsRegex(" 2 -> pipe:"));
  EXPECT_THAT(list, testing::Not(HasSubstr("lock")));
  EXPECT_EQ(std::count(list.begin(), list.end(), '>'), 3) << list;
}

TEST(Supervisor, OutlivesItsStarterAndHandlesRequestsOfOthers) {
  TestAttempt attempt(Obedient("exit 75"));
  const pid_t starter = fork();
  if (starter == 0) {
    attempt.Start();
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(starter, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  attempt.WaitForFile("ready");
  ASSERT_TRUE(Eventually([&] { return attempt.Report().phase == AttemptPhase::kRunning; }));
  EXPECT_GT(attempt.Report().supervisor, 0);
  RequestStop(attempt.directory(), 1000);
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 75);
}

TEST(Supervisor, IsReapedAfterItsEnd) {
  TestAttempt attempt("true");
  const pid_t supervisor = attempt.Start();
  attempt.WaitForEnd();
  EXPECT_TRUE(Eventually([&] {
    attempt.Report();
    return kill(supervisor, 0) != 0;
  }));
}

TEST(Supervisor, ADirectoryIsForOneAttempt) {
  TestAttempt attempt("true");
  attempt.Start();
  attempt.WaitForEnd();
  EXPECT_THROW(attempt.Start(), Error);
}

TEST(Supervisor, NothingRunsIfItCannotBeStarted) {
  TestAttempt attempt("true");
  try {
    StartAttempt("/no/such/supervisor", attempt.directory(), attempt.plan);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOsError);
    EXPECT_THAT(error.what(), HasSubstr("/no/such/supervisor"));
  }
  EXPECT_EQ(attempt.Report().phase, AttemptPhase::kNone);
  EXPECT_THROW(StartAttempt("/bin/true", attempt.directory(), attempt.plan), Error);
  EXPECT_EQ(attempt.Report().phase, AttemptPhase::kNone);
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
}

TEST(Supervisor, RunsOnlyWithTheLockOfItsStarter) {
  TestAttempt attempt("true");
  const std::string said = attempt.work() + "/said";
  const std::string command = std::string(RENZAN_SUPERVISOR) + " " + attempt.work() + " 2> " + said;
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 64);
  EXPECT_THAT(ReadFile(said), HasSubstr("started by the daemon"));
}

TEST(Supervisor, RequestsWithoutAnAttemptFail) {
  TemporaryDirectory nothing;
  EXPECT_THROW(RequestStop(nothing.path(), 1), Error);
  EXPECT_EQ(ReportOn(nothing.path()).phase, AttemptPhase::kNone);
}

TEST(Supervisor, IgnoresRequestsAfterTheEnd) {
  TestAttempt attempt("true");
  attempt.Start();
  attempt.WaitForEnd();
  RequestStop(attempt.directory(), 1);
  EXPECT_EQ(attempt.Report().phase, AttemptPhase::kEnded);
}

}  // namespace
}  // namespace renzan::cluster::local
