// Errors of the launcher: a missing or failing mpirun, and invalid options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_table.h"
#include "renzan/base/process/start_failure.h"
#include "renzan/launch/elastic.h"
#include "renzan/launch/launch.h"

namespace renzan {
namespace {

using testing::HasSubstr;

TEST(LaunchErrorsTest, AMissingMpirunIsNamed) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  LaunchOptions options;
  options.workers = 2;
  options.backend = "mpi";
  try {
    LaunchElastic(options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("openmpi-bin"));
  }
  setenv("PATH", path.c_str(), 1);
}

// Launches with an mpirun that is this shell script.
LaunchResult LaunchWithMpirun(const std::string& script, const SignalQueue& signals,
                              double patience_seconds = 30) {
  const std::string path = std::getenv("PATH");
  const TemporaryDirectory directory;
  std::ofstream(directory / "mpirun") << "#!/bin/sh\n" << script << "\n";
  EXPECT_EQ(chmod((directory / "mpirun").c_str(), 0700), 0);
  setenv("PATH", (directory.path() + ":" + path).c_str(), 1);
  const LaunchResult result = LaunchLocalWorkers(
      {.workers = 2, .backend = "mpi", .mpirun_patience_seconds = patience_seconds}, signals);
  setenv("PATH", path.c_str(), 1);
  return result;
}

// What mpirun reports when a worker dies during startup.
TEST(FakeMpirunTest, AnUnnamedKilledWorkerIsNotMpirunsFailure) {
  const LaunchResult result = LaunchWithMpirun("exit 137", SignalQueue(LaunchSignals()));
  EXPECT_EQ(result.kind, LaunchResult::Kind::kFailure);
  EXPECT_EQ(result.exit_status, static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(result.cause, testing::MatchesRegex("a worker of mpirun .pid [0-9]+. was killed by "
                                                  "signal 9 .Killed."));
}

// A worker's 1 would be an answer.
TEST(FakeMpirunTest, ItsOwnFailureIsNoAnswer) {
  const LaunchResult result = LaunchWithMpirun("exit 1", SignalQueue(LaunchSignals()));
  EXPECT_EQ(result.kind, LaunchResult::Kind::kFailure);
  EXPECT_EQ(result.exit_status, static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(result.cause, testing::MatchesRegex("mpirun .pid [0-9]+. ended with exit status 1"));
}

TEST(FakeMpirunTest, AStopRequestEndsItBeforeItHasStartedWorkers) {
  std::signal(SIGINT, SIG_IGN);  // as in a background job of a shell
  const SignalQueue signals(LaunchSignals());
  kill(getpid(), SIGTERM);
  const LaunchResult result = LaunchWithMpirun("exec sleep 60", signals);
  std::signal(SIGINT, SIG_DFL);
  EXPECT_EQ(result.kind, LaunchResult::Kind::kStopped);
  EXPECT_EQ(result.exit_status, static_cast<int>(ErrorCode::kTempFail));
}

// Behaves as Open MPI's mpirun does after a worker died at a certain moment of MPI_Init.
TEST(FakeMpirunTest, OneThatHangsAfterLosingAWorkerIsEnded) {
  for (const std::string script : {"sleep 60 & sleep 0.2 & exec sleep 60", "exec sleep 60"}) {
    const LaunchResult result = LaunchWithMpirun(script, SignalQueue(LaunchSignals()), 1);
    EXPECT_EQ(result.kind, LaunchResult::Kind::kFailure);
    EXPECT_EQ(result.exit_status, static_cast<int>(ErrorCode::kUnavailable));
    EXPECT_EQ(result.died, 1);
    EXPECT_THAT(result.cause, testing::MatchesRegex("mpirun .pid [0-9]+., which hung after losing "
                                                    "a worker, was killed by signal 9 .Killed."));
    EXPECT_THAT(ChildrenOf(getpid()), testing::IsEmpty());
  }
}

TEST(FakeMpirunTest, OneWhoseWorkersRunIsNotEnded) {
  const SignalQueue signals(LaunchSignals());
  const LaunchResult result = LaunchWithMpirun("sleep 3 & sleep 3 & wait", signals, 2);
  EXPECT_EQ(result.kind, LaunchResult::Kind::kAnswer);
  EXPECT_EQ(result.exit_status, 0);
}

TEST(LaunchErrorsTest, AProgramThatCannotBeStartedHasAShellsStatus) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "words") << "no program\n";
  std::ofstream(directory / "script") << "#!/no/such/interpreter\n";
  ASSERT_EQ(chmod((directory / "words").c_str(), 0600), 0);
  ASSERT_EQ(chmod((directory / "script").c_str(), 0700), 0);
  const struct {
    std::string backend, program;
    int status;
  } cases[] = {{"gloo", directory / "missing", 127},
               {"mpi", directory / "missing", 127},
               {"gloo", directory / "words", 126},
               {"mpi", directory / "words", 126},
               {"gloo", directory / "script", 127}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.backend + " " + c.program);
    if (c.backend == "mpi" && FindProgram("mpirun", OwnEnvironment()) != 0) continue;
    LaunchOptions options{.workers = 2, .backend = c.backend, .program = c.program};
    options.argv = {c.program};
    options.kind = WorkerProgram::kAny;
    const LaunchResult last = LaunchElastic(options, {.max_restarts = 3}).last;
    EXPECT_EQ(last.kind, LaunchResult::Kind::kFailure);
    EXPECT_EQ(last.exit_status, c.status);
    EXPECT_THAT(last.cause, HasSubstr(c.program));
    options.kind = WorkerProgram::kRenzan;
    EXPECT_THROW(LaunchElastic(options), Error);
  }
}

TEST(LaunchErrorsTest, MpirunTakesAColonForItsOwn) {
  if (FindProgram("mpirun", OwnEnvironment()) != 0) GTEST_SKIP() << "no mpirun";
  LaunchOptions options{.workers = 2, .backend = "mpi", .program = "echo"};
  options.argv = {"echo", "a", ":", "b"};
  EXPECT_THROW(LaunchElastic(options), Error);
}

TEST(LaunchErrorsTest, TheBackendMustSupportSeveralWorkers) {
  LaunchOptions options;
  options.workers = 2;
  options.backend = "local";
  EXPECT_THROW(LaunchElastic(options), Error);
}

}  // namespace
}  // namespace renzan
