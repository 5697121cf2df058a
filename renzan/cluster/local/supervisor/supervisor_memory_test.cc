// Supervisors: memory limits of workers.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"

namespace renzan::cluster::local {
namespace {

using testing::ContainsRegex;

// `tail` keeps a line in memory, here 200 MiB, until its input ends.
std::string Hog(const std::string& then) {
  return "(head -c 200M /dev/zero; " + then + ") | tail > /dev/null";
}

void Limit(TestAttempt& attempt, int64_t memory_mib) {
  attempt.plan.enforce_memory = true;
  for (AttemptPlan::Worker& worker : attempt.plan.workers) worker.memory_mib = memory_mib;
}

TEST(SupervisorMemory, KillsAWorkerThatUsesTooMuchAndEndsTheGang) {
  TestAttempt attempt(
      "if [ $RANK = 0 ]; then trap 'exit 75' TERM; echo up > ready; while :; do sleep 0.01; done; "
      "fi; while ! [ -e ready ]; do sleep 0.01; done; " +
      Hog("sleep 1000"));
  attempt.AddWorker("n1", 0);
  Limit(attempt, 64);
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_THAT(end.message, ContainsRegex("^worker 1 on n1 used [0-9.]+MiB of memory, more than the "
                                         "64MiB that its job requests .resources.memory.$"));
  EXPECT_EQ(end.workers[0].exit_code, 75);
  EXPECT_EQ(end.workers[1].signal, SIGKILL);
}

TEST(SupervisorMemory, CountsProcessesInOtherSessions) {
  TestAttempt attempt("setsid sh -c '" + Hog("sleep 1000") + "' & wait");
  Limit(attempt, 64);
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 137);
}

TEST(SupervisorMemory, AllowsMemoryWithinTheLimitAndWithoutLimits) {
  // Long enough for a check or two.
  TestAttempt within(Hog("sleep 3")), not_enforced(Hog("sleep 3")), not_stated(Hog("sleep 3"));
  Limit(within, 1024);
  Limit(not_enforced, 64);
  not_enforced.plan.enforce_memory = false;
  Limit(not_stated, 0);
  for (TestAttempt* attempt : {&within, &not_enforced, &not_stated}) attempt->Start();
  for (TestAttempt* attempt : {&within, &not_enforced, &not_stated})
    EXPECT_EQ(attempt->WaitForEnd().message, "all workers ended with exit status 0");
}

TEST(SupervisorMemory, TheKernelKillsWorkersFirstWhenOutOfMemory) {
  int ours = 0;
  std::ifstream("/proc/self/oom_score_adj") >> ours;
  TestAttempt attempt("cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj");
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_EQ(attempt.Log(0), fmt::format("{}\n{}\n", std::max(ours, 500), ours));
}

}  // namespace
}  // namespace renzan::cluster::local
