#include "renzan/cluster/local/supervisor/gang_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <utility>

namespace renzan::cluster::local {

bool operator==(const GangState::Signal& a, const GangState::Signal& b) {
  return a.rank == b.rank && a.number == b.number && a.again == b.again;
}
void PrintTo(const GangState::Signal& signal, std::ostream* out) {
  *out << "worker " << signal.rank << " gets " << signal.number;
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Signal = GangState::Signal;

// Workers 0 and 1 on n0, 2 on n1; a grace period of 30 s.
AttemptPlan GangPlan() {
  AttemptPlan plan;
  plan.workers = {{.node = "n0"}, {.node = "n0", .local_rank = 1}, {.node = "n1"}};
  return plan;
}

void EndAll(GangState& state, int exit_code, int signal, double now) {
  for (int rank = 0; rank < 3; ++rank)
    if (state.running(rank)) state.WorkersEnded({{rank, exit_code, signal}}, now);
}

TEST(GangState, LetsWorkersSucceed) {
  GangState state(GangPlan(), 100);
  state.WorkersEnded({{1, 0, 0}}, 101);
  EXPECT_THAT(state.Step(1e6), IsEmpty());
  EXPECT_FALSE(state.NextStep());
  EndAll(state, 0, 0, 102);
  const AttemptEnd end = state.Result();
  EXPECT_EQ(end.by, EndedBy::kItself);
  EXPECT_EQ(end.exit_code, 0);
}

TEST(GangState, OthersGetFiveSecondsAfterAFailure) {
  GangState state(GangPlan(), 100);
  state.WorkersEnded({{2, 3, 0}}, 101);
  EXPECT_THAT(state.Step(101), ElementsAre(Signal{0, SIGTERM}, Signal{1, SIGTERM}));
  EXPECT_EQ(state.NextStep(), 106);
  EXPECT_THAT(state.Step(105.9), IsEmpty());
  EXPECT_THAT(state.Step(106), ElementsAre(Signal{0, SIGKILL}, Signal{1, SIGKILL}));
  EXPECT_THAT(state.Step(107), IsEmpty());
  EXPECT_FALSE(state.NextStep());
  EndAll(state, 137, 9, 107);
  const AttemptEnd end = state.Result();
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.message, "worker 2 on n1 ended with exit status 3");
  EXPECT_EQ(end.workers[0].signal, 9);
}

TEST(GangState, OthersGetAtMostThePlansGraceAfterAFailure) {
  AttemptPlan plan = GangPlan();
  plan.grace_seconds = 2;
  GangState state(plan, 0);
  state.WorkersEnded({{0, 1, 0}}, 10);
  EXPECT_EQ((state.Step(10), state.NextStep()), 12);
}

TEST(GangState, OfSimultaneousFailuresTheMostSevereIsReported) {
  GangState state(GangPlan(), 0);
  state.WorkersEnded({{0, 69, 0}, {1, 75, 0}, {2, 139, SIGSEGV}}, 1);
  EXPECT_EQ(state.Result().exit_code, 139);
  EXPECT_THAT(state.Result().message, HasSubstr("worker 2 on n1 was killed by signal 11"));
  // The supervisor did not end any worker.
  EXPECT_EQ(state.Result().by, EndedBy::kItself);
}

TEST(GangState, AStopGivesTheRequestedGrace) {
  GangState state(GangPlan(), 0);
  state.StopRequested(120, 10);
  EXPECT_THAT(state.Step(10),
              ElementsAre(Signal{0, SIGTERM}, Signal{1, SIGTERM}, Signal{2, SIGTERM}));
  EXPECT_EQ(state.NextStep(), 130);
  EndAll(state, 75, 0, 20);
  EXPECT_EQ(state.Result().by, EndedBy::kRequest);
  EXPECT_EQ(state.Result().exit_code, 75);
  EXPECT_EQ(state.Result().message,
            "it was stopped on request; worker 0 on n0 ended with exit status 75");
}

TEST(GangState, ALaterStopCanShortenTheGraceOnly) {
  GangState state(GangPlan(), 0);
  state.StopRequested(60, 0);
  state.Step(0);
  state.StopRequested(90, 10);
  EXPECT_EQ(state.NextStep(), 60);
  state.StopRequested(5, 20);
  EXPECT_EQ(state.NextStep(), 25);
  EXPECT_THAT(state.Step(20), IsEmpty()) << "no second SIGTERM";
  EXPECT_EQ(state.Step(25).size(), 3u);
  EndAll(state, 137, 9, 26);
  EXPECT_THAT(state.Result().message, HasSubstr("worker 0 on n0 did not end within 25 s"));
  EXPECT_EQ(state.Result().killed_after_seconds, 25) << "since the first SIGTERM";
}

TEST(GangState, JobsThatSaveOnStopGetAnotherSigtermWhenTheGraceIsShortened) {
  AttemptPlan plan = GangPlan();
  plan.saves_on_stop = true;
  GangState state(plan, 0);
  state.StopRequested(60, 0);
  EXPECT_THAT(state.Step(0),
              ElementsAre(Signal{0, SIGTERM}, Signal{1, SIGTERM}, Signal{2, SIGTERM}));
  state.StopRequested(90, 10);
  EXPECT_THAT(state.Step(10), IsEmpty()) << "it is not longer";
  EXPECT_EQ(state.kill_at(), 60);
  state.WorkersEnded({{1, 75, 0}}, 15);
  state.StopRequested(5, 20);
  EXPECT_EQ(state.kill_at(), 25);
  EXPECT_THAT(state.Step(20), ElementsAre(Signal{0, SIGTERM, true}, Signal{2, SIGTERM, true}));
  EXPECT_THAT(state.Step(21), IsEmpty());
  EXPECT_THAT(state.Step(25), ElementsAre(Signal{0, SIGKILL}, Signal{2, SIGKILL}));
}

TEST(GangState, TooManyFilesEndAllWorkersAtOnceAndBlameNoNode) {
  AttemptPlan plan = GangPlan();
  plan.max_disk_mib = 1024;
  GangState state(plan, 0);
  state.DiskExceeded(1536, 10);
  EXPECT_THAT(state.Step(10),
              ElementsAre(Signal{0, SIGKILL}, Signal{1, SIGKILL}, Signal{2, SIGKILL}));
  // One of them was faster: it is not done, and does not ask to be run again.
  state.WorkersEnded({{0, 75, 0}, {1, 0, 0}, {2, 137, 9}}, 11);
  const AttemptEnd end = state.Result();
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.failed_on, "");
  EXPECT_THAT(end.message, HasSubstr("took 1.5GiB, more than the 1GiB that a job may have there"));
}

TEST(GangState, AJobThatTakesTooMuchDiskWhileItStopsIsKilledAtOnce) {
  AttemptPlan plan = GangPlan();
  plan.max_disk_mib = 1024;
  GangState state(plan, 0);
  state.StopRequested(600, 0);
  state.Step(0);
  state.DiskExceeded(1536, 10);
  EXPECT_THAT(state.Step(10),
              ElementsAre(Signal{0, SIGKILL}, Signal{1, SIGKILL}, Signal{2, SIGKILL}));
}

TEST(GangState, ReportsThatNoWorkerWasKilledAtTheEndOfTheGrace) {
  GangState state(GangPlan(), 0);
  state.StopRequested(60, 0);
  state.Step(0);
  state.NodeFailed("n1", 10);
  state.Step(10);
  EndAll(state, 75, 0, 12);
  EXPECT_EQ(state.Result().killed_after_seconds, 0);
}

TEST(GangState, AStopAfterAFailureShortensTheGraceButIsNotTheReason) {
  GangState state(GangPlan(), 0);
  state.WorkersEnded({{1, 1, 0}}, 0);
  state.Step(0);
  state.StopRequested(0, 1);
  EXPECT_THAT(state.Step(1), ElementsAre(Signal{0, SIGKILL}, Signal{2, SIGKILL}));
  EndAll(state, 137, 9, 1);
  EXPECT_EQ(state.Result().by, EndedBy::kWorkerFailed);
}

TEST(GangState, TheTimeoutCountsFromTheStart) {
  AttemptPlan plan = GangPlan();
  plan.timeout_ms = 2500;
  GangState state(plan, 100);
  EXPECT_EQ(state.NextStep(), 102.5);
  EXPECT_THAT(state.Step(102.4), IsEmpty());
  EXPECT_EQ(state.Step(102.5).size(), 3u);
  EXPECT_EQ(state.NextStep(), 132.5);
  EndAll(state, 0, 0, 103);
  EXPECT_EQ(state.Result().by, EndedBy::kTimeout);
  EXPECT_THAT(state.Result().message, HasSubstr("its timeout of 2.5 s"));
}

TEST(GangState, AnotherTimeLimitCountsFromTheStartToo) {
  AttemptPlan plan = GangPlan();
  plan.timeout_ms = 2500;
  GangState state(plan, 100);
  state.TimeLimitChanged(4000);
  EXPECT_EQ(state.NextStep(), 104);
  EXPECT_THAT(state.Step(103.9), IsEmpty());
  state.TimeLimitChanged(0);
  EXPECT_EQ(state.NextStep(), std::nullopt);
  EXPECT_THAT(state.Step(200), IsEmpty());
  state.TimeLimitChanged(50'000);  // which are over
  EXPECT_EQ(state.Step(200).size(), 3u);
  state.TimeLimitChanged(0);  // too late
  EXPECT_EQ(state.NextStep(), 230);
  EndAll(state, 0, 0, 201);
  EXPECT_EQ(state.Result().by, EndedBy::kTimeout);
  EXPECT_THAT(state.Result().message, HasSubstr("its timeout of 50 s"));
}

TEST(GangState, KillsWorkersOfAFailedNodeImmediately) {
  GangState state(GangPlan(), 0);
  state.NodeFailed("n9", 1);
  EXPECT_THAT(state.Step(1), IsEmpty());
  state.NodeFailed("n0", 2);
  EXPECT_THAT(state.Step(2),
              ElementsAre(Signal{0, SIGKILL}, Signal{1, SIGKILL}, Signal{2, SIGTERM}));
  EXPECT_EQ(state.NextStep(), 7);
  EndAll(state, 137, 9, 3);
  EXPECT_EQ(state.Result().by, EndedBy::kNodeFailed);
  EXPECT_EQ(state.Result().message, "node n0 failed");
}

TEST(GangState, ANodeCanFailDuringAStop) {
  GangState state(GangPlan(), 0);
  state.StopRequested(120, 0);
  state.Step(0);
  state.NodeFailed("n1", 100);
  EXPECT_THAT(state.Step(100), ElementsAre(Signal{2, SIGKILL}));
  EXPECT_EQ(state.NextStep(), 105);
  EndAll(state, 137, 9, 101);
  EXPECT_EQ(state.Result().by, EndedBy::kNodeFailed);
}

// GangPlan() with 4 GiB of memory for each worker.
AttemptPlan PlanWithMemory() {
  AttemptPlan plan = GangPlan();
  for (AttemptPlan::Worker& worker : plan.workers) worker.memory_mib = 4096;
  return plan;
}

TEST(GangState, KillsAWorkerThatUsesTooMuchMemoryAndStopsTheOthers) {
  GangState state(PlanWithMemory(), 0);
  state.MemoryExceeded(1, 5222, 10);
  EXPECT_THAT(state.Step(10),
              ElementsAre(Signal{0, SIGTERM}, Signal{1, SIGKILL}, Signal{2, SIGTERM}));
  EXPECT_EQ(state.NextStep(), 15);
  state.MemoryExceeded(1, 6000, 11);  // still ending
  EXPECT_THAT(state.Step(11), IsEmpty());
  state.WorkersEnded({{0, 75, 0}, {2, 75, 0}}, 11);
  state.WorkersEnded({{1, 137, SIGKILL}}, 12);
  const AttemptEnd end = state.Result();
  EXPECT_EQ(end.by, EndedBy::kWorkerFailed);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.message,
            "worker 1 on n0 used 5.1GiB of memory, more than the 4GiB that its job requests "
            "(resources.memory)");
  EXPECT_EQ(end.workers[0].exit_code, 75);
}

TEST(GangState, ReportsMemoryJustAboveTheLimitExactly) {
  GangState state(PlanWithMemory(), 0);
  state.MemoryExceeded(0, 4097, 1);
  EndAll(state, 137, SIGKILL, 2);
  EXPECT_THAT(state.Result().message, HasSubstr("used 4097MiB of memory, more than the 4GiB that"));
}

TEST(GangState, TooMuchMemoryIsAFailureEvenIfTheWorkerEndsFirst) {
  GangState state(PlanWithMemory(), 0);
  state.MemoryExceeded(2, 5000, 1);
  state.Step(1);
  EndAll(state, 0, 0, 1);
  EXPECT_EQ(state.Result().by, EndedBy::kWorkerFailed);
  EXPECT_EQ(state.Result().exit_code, 137);
  EXPECT_EQ(state.Result().workers[2].signal, SIGKILL);
}

TEST(GangState, TooMuchMemoryDuringAStopIsNotTheReason) {
  GangState state(PlanWithMemory(), 0);
  state.StopRequested(120, 10);
  state.Step(10);
  state.MemoryExceeded(0, 5222, 20);
  EXPECT_THAT(state.Step(20), ElementsAre(Signal{0, SIGKILL}));
  EXPECT_EQ(state.NextStep(), 130) << "the others keep their grace";
  EndAll(state, 137, SIGKILL, 21);
  EXPECT_EQ(state.Result().by, EndedBy::kRequest);
  EXPECT_THAT(state.Result().message,
              HasSubstr("stopped on request; worker 0 on n0 used 5.1GiB of memory"));
}

TEST(GangState, TwoNodesCanFailAtTheSameTime) {
  GangState state(GangPlan(), 0);
  state.NodeFailed("n1", 1);
  state.NodeFailed("n0", 1);
  EXPECT_THAT(state.Step(1),
              ElementsAre(Signal{0, SIGKILL}, Signal{1, SIGKILL}, Signal{2, SIGKILL}));
}

}  // namespace
}  // namespace renzan::cluster::local
