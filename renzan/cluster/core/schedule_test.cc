// Tables: nodes, queues, jobs and what a cycle should decide. Every decision also goes through the
// independent checks of invariants.h.

#include "renzan/cluster/core/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr TimeMs kNow = 100'000'000;

struct JobSketch {
  int queue = 0, priority = 0, workers = 1, max_workers = 0;
  int64_t gpus = 1;
  bool checkpoints = true;
  Placement on = {};  // running there
  TimeMs ran_ms = 3'600'000;
  int user = 0;
  bool backfilled = false;
  bool preemptible = true;
  WorkerRequest request = {};
};

class ScheduleTest : public testing::Test {
 protected:
  ScheduleTest() {
    snapshot.now = kNow;
    snapshot.users = {{.name = "ann"}, {.name = "bob"}};
    snapshot.queues = {{.name = "default"}};
  }

  void Nodes(int count, int64_t gpus = 8) {
    for (int node = 0; node < count; ++node)
      snapshot.nodes.push_back({.name = "n" + std::to_string(snapshot.nodes.size()),
                                .capacity = {.amount = {64'000, 512 * 1024, gpus}}});
  }

  void TwoQueues(int64_t guaranteed_a, int64_t guaranteed_b) {
    snapshot.queues = {{.name = "a", .guaranteed = {.amount = {0, 0, guaranteed_a}}},
                       {.name = "b", .guaranteed = {.amount = {0, 0, guaranteed_b}}}};
  }

  JobId Add(const JobSketch& sketch) {
    WorkerRequest request = sketch.request;
    request.per_worker = {.amount = {1'000, 1024, sketch.gpus}};
    Job job{.id = static_cast<JobId>(snapshot.jobs.size()) + 1,
            .request = snapshot.InternRequest(request),
            .queue = sketch.queue,
            .user = sketch.user,
            .priority = sketch.priority,
            .min_workers = sketch.workers,
            .max_workers = std::max(sketch.workers, sketch.max_workers),
            .checkpoints = sketch.checkpoints,
            .preemptible = sketch.preemptible,
            .submitted = kNow - 7'200'000 + static_cast<TimeMs>(snapshot.jobs.size())};
    if (!sketch.on.empty()) {
      job.state = JobState::kRunning;
      job.placement = sketch.on;
      job.started = job.last_resize = kNow - sketch.ran_ms;
      job.backfilled = sketch.backfilled;
    }
    snapshot.jobs.push_back(job);
    return job.id;
  }

  Decisions Run() {
    EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty());
    Decisions decisions = Schedule(snapshot);
    EXPECT_THAT(ValidateDecisions(snapshot, decisions), IsEmpty());
    return decisions;
  }

  static std::vector<JobId> Started(const Decisions& decisions) {
    std::vector<JobId> jobs;
    for (const Start& start : decisions.starts) jobs.push_back(start.job);
    return jobs;
  }
  static std::vector<JobId> Stopped(const Decisions& decisions) {
    std::vector<JobId> jobs;
    for (const Stop& stop : decisions.stops) jobs.push_back(stop.job);
    return jobs;
  }
  static WaitReason ReasonOf(const Decisions& decisions, JobId job) {
    for (const Wait& wait : decisions.waits)
      if (wait.job == job) return wait.reason;
    ADD_FAILURE() << "job " << job << " does not wait";
    return {};
  }

  Snapshot snapshot;
};

TEST_F(ScheduleTest, AGangStartsWholeOrNotAtAll) {
  Nodes(2);
  const JobId fits = Add({.workers = 2, .gpus = 8});
  const JobId waits = Add({.workers = 2, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
  EXPECT_EQ(ReasonOf(decisions, waits), WaitReason::kResources);
}

TEST_F(ScheduleTest, SmallJobsFillNodesThatAreBrokenAlready) {
  Nodes(3);
  Add({.gpus = 5, .on = {{1, 1}}});
  const JobId small = Add({.gpus = 2});
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(small));
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{1, 1}));
}

TEST_F(ScheduleTest, AGangStandsOnFewNodesAndLeavesWholeOnesWhole) {
  Nodes(3);
  Add({.gpus = 4, .on = {{0, 1}}});
  Add({.workers = 6, .gpus = 2});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 1u);
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{0, 2}, Placed{1, 4}));
}

TEST_F(ScheduleTest, PriorityGoesFirstThenWhoCameFirst) {
  Nodes(1);
  const JobId first = Add({.gpus = 4});
  Add({.gpus = 4});
  const JobId urgent = Add({.priority = 1, .gpus = 4});
  EXPECT_THAT(Started(Run()), ElementsAre(urgent, first));
}

TEST_F(ScheduleTest, PreemptsTheCheapestOfLowerPriorityAndNobodyElse) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});  // an hour of 8 GPUs would be lost
  const JobId cheap = Add({.gpus = 8, .on = {{1, 1}}});
  const JobId urgent = Add({.priority = 5, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(cheap));
  EXPECT_EQ(decisions.stops[0].on_behalf_of, urgent);
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kPreempted);
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kPipelined);
}

TEST_F(ScheduleTest, NobodyIsPreemptedInVain) {
  Nodes(2);
  Add({.priority = 9, .gpus = 1, .on = {{0, 1}}});
  Add({.priority = 9, .gpus = 1, .on = {{1, 1}}});
  Add({.gpus = 7, .on = {{0, 1}}});
  const JobId large = Add({.priority = 5, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, large), WaitReason::kResources);
}

TEST_F(ScheduleTest, EqualPriorityStopsNobody) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}});
  Add({.gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(ScheduleTest, APreemptorTakesThePlaceThatWasMadeForIt) {
  Nodes(1);
  Add({.gpus = 8, .on = {{0, 1}}});
  const JobId urgent = Add({.priority = 5, .gpus = 4});
  const JobId newer = Add({.priority = 9, .gpus = 8});
  snapshot.jobs[0].state = JobState::kStopping;
  snapshot.jobs[0].stopping_for = urgent;
  const Decisions decisions = Run();
  EXPECT_EQ(decisions.waits[0].job, urgent);
  EXPECT_EQ(ReasonOf(decisions, urgent), WaitReason::kPipelined);
  EXPECT_NE(ReasonOf(decisions, newer), WaitReason::kPipelined);
}

TEST_F(ScheduleTest, ShrinksElasticJobsBeforeItStopsAnyone) {
  Nodes(2);
  const JobId elastic = Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}});
  const JobId urgent = Add({.priority = 1, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, elastic);
  EXPECT_EQ(NumWorkers(decisions.resizes[0].target), 1);
  EXPECT_EQ(decisions.resizes[0].on_behalf_of, urgent);
}

TEST_F(ScheduleTest, WhatAnElasticJobHasBeyondItsMinimumYieldsToEquals) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}, {1, 1}}});
  Add({.gpus = 8});
  EXPECT_EQ(Run().resizes.size(), 1u);
}

TEST_F(ScheduleTest, ElasticJobsGrowIntoWhatIsLeft) {
  Nodes(3);
  const JobId grows = Add({.workers = 1, .max_workers = 4, .gpus = 8, .on = {{0, 1}}});
  const JobId starts = Add({.workers = 1, .max_workers = 2, .gpus = 4});
  const Decisions decisions = Run();
  ASSERT_THAT(Started(decisions), ElementsAre(starts));
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, grows);
  EXPECT_EQ(NumWorkers(decisions.resizes[0].target), 2);
  EXPECT_EQ(NumWorkers(decisions.starts[0].placement), 2);
}

TEST_F(ScheduleTest, GrowsAtMostSoOften) {
  Nodes(2);
  Add({.workers = 1, .max_workers = 2, .gpus = 8, .on = {{0, 1}}, .ran_ms = 60'000});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.resizes, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow - 60'000 + ScheduleOptions{}.min_between_resizes_ms);
}

TEST_F(ScheduleTest, IdleQuotaIsLentAndReclaimedWhateverThePriority) {
  TwoQueues(8, 8);
  Nodes(2);
  const JobId own = Add({.queue = 1, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  const JobId borrowed =
      Add({.queue = 1, .priority = 9, .gpus = 8, .on = {{1, 1}}, .ran_ms = 60'000});
  Add({.queue = 0, .gpus = 8});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.stops.size(), 1u);
  EXPECT_THAT(Stopped(decisions), testing::AnyOf(ElementsAre(own), ElementsAre(borrowed)));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);
}

TEST_F(ScheduleTest, WhatIsGuaranteedIsNotTakenByPriority) {
  TwoQueues(8, 8);
  Nodes(2);
  Add({.queue = 0, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = 1, .gpus = 8, .on = {{1, 1}}});
  Add({.queue = 0, .priority = 100, .gpus = 8});  // would stop its own queue's job
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(1));
}

TEST_F(ScheduleTest, ALimitHolds) {
  TwoQueues(8, 8);
  snapshot.queues[0].limit[kGpu] = 12;
  Nodes(4);
  Add({.queue = 0, .gpus = 8, .on = {{0, 1}}});
  const JobId fits = Add({.queue = 0, .gpus = 4});
  const JobId waits = Add({.queue = 0, .gpus = 1});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
  EXPECT_EQ(ReasonOf(decisions, waits), WaitReason::kQueueLimit);
}

TEST_F(ScheduleTest, AUserCapHoldsUntilItIsOverriddenAndAgainAfterwards) {
  snapshot.users[0].max_gpus = 4;
  Nodes(1);
  const JobId running = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId more = Add({.gpus = 2});
  EXPECT_EQ(ReasonOf(Run(), more), WaitReason::kUserCap);
  snapshot.users[0].quota_overrides = {{.max_gpus = 8, .until = kNow + 1000}};
  const Decisions overridden = Run();
  EXPECT_THAT(Started(overridden), ElementsAre(more));
  EXPECT_EQ(overridden.look_again, kNow + 1000);
  snapshot.users[0].max_gpus = 2;
  snapshot.users[0].quota_overrides = {{.max_gpus = 8, .until = kNow}};
  EXPECT_THAT(Stopped(Run()), ElementsAre(running));
}

TEST_F(ScheduleTest, TheFirstThatCannotStartIsReservedForAndOnlyYieldingJobsFillIn) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId large = Add({.workers = 2, .gpus = 8});
  const JobId stubborn = Add({.gpus = 8, .checkpoints = false});
  const JobId yields = Add({.gpus = 8});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, large);
  EXPECT_EQ(ReasonOf(decisions, stubborn), WaitReason::kReserved);
  ASSERT_THAT(Started(decisions), ElementsAre(yields));
  EXPECT_TRUE(decisions.starts[0].backfill);
}

TEST_F(ScheduleTest, AJobWhoseCheckpointTakesLongerThanItsGraceIsNotBackfilled) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.workers = 2, .gpus = 8});
  const JobId slow = Add({.gpus = 8});
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms + 1;
  EXPECT_EQ(ReasonOf(Run(), slow), WaitReason::kReserved);
  snapshot.jobs[2].checkpoint_cost_ms = snapshot.jobs[2].grace_ms;
  EXPECT_THAT(Started(Run()), ElementsAre(slow));
}

TEST_F(ScheduleTest, AJobWhoseCheckpointTakesLongerThanItsGraceIsTheDearerVictim) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}});
  const JobId quick = Add({.gpus = 8, .on = {{1, 1}}});
  snapshot.jobs[0].checkpoint_cost_ms = snapshot.jobs[0].grace_ms + 1;
  snapshot.jobs[1].checkpoint_cost_ms = snapshot.jobs[1].grace_ms;
  Add({.priority = 1, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(quick));
  // Unless it has saved its work by itself just now.
  snapshot.jobs[0].last_checkpoint = snapshot.now;
  EXPECT_THAT(Stopped(Run()), ElementsAre(1));
}

TEST_F(ScheduleTest, BackfilledJobsGiveWayToTheReservationOnceItHelps) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  const JobId large = Add({.workers = 2, .gpus = 8});
  const Decisions decisions = Run();
  ASSERT_THAT(Stopped(decisions), ElementsAre(1));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReservation);
  EXPECT_EQ(ReasonOf(decisions, large), WaitReason::kPipelined);
}

TEST_F(ScheduleTest, BackfilledJobsStayWhileSomebodyElseIsInTheWay) {
  Nodes(2);
  Add({.gpus = 8, .on = {{0, 1}}, .backfilled = true});
  Add({.gpus = 8, .on = {{1, 1}}});
  Add({.workers = 2, .gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(ScheduleTest, WorkersLeaveANodeThatIsBeingTakenAway) {
  Nodes(3);
  const JobId whole = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId elastic = Add({.workers = 1, .max_workers = 2, .gpus = 4, .on = {{0, 1}, {1, 1}}});
  snapshot.nodes[0].state = NodeState::kDraining;
  snapshot.nodes[0].until = kNow + 120'000;
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(whole));
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_EQ(decisions.resizes[0].job, elastic);
  EXPECT_THAT(decisions.resizes[0].target, ElementsAre(Placed{1, 1}));
}

TEST_F(ScheduleTest, RequiredTopologyKeepsAGangInOneDomain) {
  snapshot.topology_levels = {"rack"};
  Nodes(4);
  for (int node = 0; node < 4; ++node)
    snapshot.nodes[node].labels = {{"rack", node < 2 ? "r0" : "r1"}};
  Add({.gpus = 1, .on = {{0, 1}}});
  WorkerRequest in_a_rack{.topology_level = "rack", .topology_required = true};
  Add({.workers = 2, .gpus = 8, .request = in_a_rack});
  const JobId waits = Add({.workers = 2, .gpus = 7, .request = in_a_rack});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{2, 1}, Placed{3, 1}));
  EXPECT_EQ(decisions.starts[1].job, waits);
}

TEST_F(ScheduleTest, AGangOnOneHostIsPlacedAndPreemptsAsOnePiece) {
  Nodes(2);
  Add({.gpus = 6, .on = {{0, 1}}});
  Add({.gpus = 6, .on = {{1, 1}}, .ran_ms = 10});
  WorkerRequest on_a_host{.topology_level = "host", .topology_required = true};
  Add({.priority = 1, .workers = 2, .gpus = 2, .request = on_a_host});
  EXPECT_EQ(Stopped(Run()).size(), 1u);
}

TEST_F(ScheduleTest, LabelsAreRequiredOrPreferred) {
  Nodes(3);
  snapshot.nodes[1].labels = {{"gpu_model", "a100"}};
  snapshot.nodes[2].labels = {{"gpu_model", "a100"}, {"fast", "yes"}};
  Add({.request = {.required = {{"gpu_model", "a100"}}}});
  Add({.request = {.preferred = {{"fast", "yes"}}}});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_EQ(decisions.starts[0].placement[0].node, 1);
  EXPECT_EQ(decisions.starts[1].placement[0].node, 2);
}

TEST_F(ScheduleTest, JobsThatCannotBeSavedStayOffSpotNodesWhereTheyCan) {
  Nodes(2);
  snapshot.nodes[0].spot = true;
  Add({.gpus = 4, .checkpoints = false});
  Add({.gpus = 4, .checkpoints = true});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.starts.size(), 2u);
  EXPECT_EQ(decisions.starts[0].placement[0].node, 1);
  EXPECT_EQ(decisions.starts[1].placement[0].node, 0);
}

TEST_F(ScheduleTest, WhatCanNeverFitIsSaidToBeInfeasible) {
  Nodes(2);
  const JobId never = Add({.gpus = 9});
  const JobId fits = Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, never), WaitReason::kInfeasible);
  EXPECT_THAT(Started(decisions), ElementsAre(fits));
}

TEST_F(ScheduleTest, TheGrandChallengeStopsEverybody) {
  TwoQueues(8, 8);
  Nodes(2);
  Add({.queue = 0, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = 1, .gpus = 8, .on = {{1, 1}}});
  const JobId all = Add({.workers = 2, .gpus = 8});
  snapshot.jobs.back().grand_challenge = true;
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), UnorderedElementsAre(1, 2));
  EXPECT_EQ(ReasonOf(decisions, all), WaitReason::kPipelined);
}

TEST_F(ScheduleTest, BackoffIsWaitedOut) {
  Nodes(1);
  const JobId job = Add({});
  snapshot.jobs[0].eligible_at = kNow + 500;
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kBackoff);
  EXPECT_EQ(decisions.look_again, kNow + 500);
}

TEST_F(ScheduleTest, QueuesTakeTurnsByTheirShares) {
  TwoQueues(4, 12);
  Nodes(1);
  for (int job = 0; job < 4; ++job) Add({.queue = 0, .gpus = 2});
  for (int job = 0; job < 4; ++job) Add({.queue = 1, .gpus = 2});
  // Job 1 is half of a's guarantee, 5 a sixth of b's: a, then b until it has caught up.
  EXPECT_THAT(Started(Run()), ElementsAre(1, 5, 6, 7));
}

TEST_F(ScheduleTest, WhoHasWaitedTooLongGoesFirst) {
  TwoQueues(8, 0);
  Nodes(1);
  const JobId fresh = Add({.queue = 1, .gpus = 8});
  const JobId old = Add({.queue = 1, .gpus = 8});
  snapshot.queues.push_back({.name = "c"});
  const JobId overdue = Add({.queue = 2, .gpus = 8});
  snapshot.jobs[2].submitted = kNow - 2 * 24 * 3'600'000;
  EXPECT_THAT(Started(Run()), ElementsAre(overdue));
  (void)fresh, (void)old;
}

// Behind it age gives nothing over a queue that has less.
TEST_F(ScheduleTest, OfThoseWhoHaveWaitedTooLongOneGoesFirst) {
  Nodes(2);
  snapshot.queues = {{.name = "a"}, {.name = "b"}};
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 6, .on = {{1, 1}}});
  const JobId oldest = Add({});
  const JobId next = Add({});
  for (const JobId job : {oldest, next}) snapshot.Find(job)->submitted = kNow - 25 * 3'600'000;
  const JobId of_b = Add({.queue = 1});
  EXPECT_THAT(Started(Run()), ElementsAre(oldest, of_b));
}

TEST_F(ScheduleTest, WhoHasWaitedTooLongAndStillCannotStartHasTheReservation) {
  Nodes(2);
  snapshot.queues = {{.name = "a"}, {.name = "b"}};
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  Add({.gpus = 7, .on = {{1, 1}}});
  const JobId oldest = Add({.workers = 2, .gpus = 8});
  const JobId next = Add({});
  for (const JobId job : {oldest, next}) snapshot.Find(job)->submitted = kNow - 25 * 3'600'000;
  const JobId of_b = Add({.queue = 1});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.reservations.size(), 1u);
  EXPECT_EQ(decisions.reservations[0].job, oldest);
  EXPECT_THAT(Started(decisions), ElementsAre(of_b));
}

TEST_F(ScheduleTest, SameSnapshotSameDecisions) {
  Nodes(3);
  for (int job = 0; job < 20; ++job)
    Add({.priority = job % 3, .workers = 1 + job % 2, .gpus = 1 + job % 8});
  const Decisions a = Run(), b = Run();
  EXPECT_EQ(Started(a), Started(b));
  ASSERT_EQ(a.waits.size(), b.waits.size());
  for (size_t wait = 0; wait < a.waits.size(); ++wait)
    EXPECT_EQ(a.waits[wait].job, b.waits[wait].job);
}

class ExplainTest : public ScheduleTest {};

TEST_F(ExplainTest, SaysWhatIsShortAndWhatWouldDo) {
  Nodes(2);
  Add({.gpus = 2, .on = {{0, 1}}});
  snapshot.jobs[0].expected_end = kNow + 600'000;
  Add({.gpus = 8, .on = {{1, 1}}});
  const JobId job = Add({.gpus = 8});
  const Explanation explanation = Explain(snapshot, job);
  EXPECT_THAT(explanation.why, HasSubstr("one worker with 8 GPUs"));
  EXPECT_THAT(explanation.why, HasSubstr("n0 has 6 of 8 GPUs free"));
  EXPECT_THAT(explanation.would_start_with,
              testing::IsSupersetOf({"with 6 GPUs a worker instead of 8",
                                     "with priority 1 instead of 0, before or in place of others",
                                     "if job 1 of queue default ended (2 GPUs)"}));
  EXPECT_EQ(explanation.estimated_start, kNow + 600'000);
  EXPECT_EQ(explanation.place_in_line, 1);
}

TEST_F(ExplainTest, NamesTheLimitAndByHowMuch) {
  snapshot.queues[0].limit[kGpu] = 6;
  Nodes(2);
  Add({.gpus = 4, .on = {{0, 1}}});
  const Explanation explanation = Explain(snapshot, Add({.gpus = 4}));
  EXPECT_THAT(explanation.why, HasSubstr("limit of 6 GPUs; it uses 4 GPUs and the job needs 4"));
  EXPECT_THAT(explanation.would_start_with,
              testing::Contains("if the limit of queue default were 8 GPUs instead of 6"));
}

TEST_F(ExplainTest, WhatItSaysWouldStartTheJobDoes) {
  Nodes(4);
  for (int node = 0; node < 4; ++node) Add({.gpus = 3, .on = {{node, 1}}});
  const JobId job = Add({.workers = 3, .gpus = 8});
  const Explanation explanation = Explain(snapshot, job);
  ASSERT_THAT(explanation.would_start_with, testing::Contains("with 5 GPUs a worker instead of 8"));
  snapshot.worker_requests.push_back(snapshot.worker_requests[snapshot.jobs.back().request]);
  snapshot.worker_requests.back().per_worker[kGpu] = 5;
  snapshot.jobs.back().request = static_cast<int>(snapshot.worker_requests.size()) - 1;
  EXPECT_THAT(Started(Run()), ElementsAre(job));
}

TEST_F(ExplainTest, CostsNoMoreCyclesThanItMay) {
  Nodes(4);
  for (int job = 0; job < 60; ++job) Add({.priority = job % 7, .gpus = 8});
  const JobId job = Add({.workers = 3, .gpus = 8});
  int cycles = 0;
  const auto count = [&] {
    ++cycles;
    return false;
  };
  const Explanation explanation = Explain(snapshot, job, {.max_cycles = 40, .cancelled = count});
  EXPECT_LE(cycles, 40);
  EXPECT_GT(cycles, 20);
  EXPECT_THAT(explanation.estimate_rests_on, HasSubstr("too much"));
  cycles = 0;
  Explain(snapshot, job, {.cancelled = [&] { return ++cycles > 3; }});
  EXPECT_LE(cycles, 10);  // each question that is left asks once
}

TEST_F(ExplainTest, AdvisesNothingThatWouldBeRefused) {
  Nodes(1);
  Add({.gpus = 6, .on = {{0, 1}}});
  const JobId job = Add({.gpus = 8});
  ExplainOptions options{.rules = {.max_priority = 0}};
  const auto advice = [&] { return Explain(snapshot, job, options).would_start_with; };
  EXPECT_THAT(advice(), testing::Contains("with 2 GPUs a worker instead of 8"));
  EXPECT_THAT(advice(), testing::Each(testing::Not(HasSubstr("with priority"))));
  options.rules.round_up = [](const Resources& worker) -> std::optional<Resources> {
    if (worker.gpu() > 1) return Resources{.amount = {1'000, 1024, 8}};
    return Resources{.amount = {1'000, 1024, 1}};
  };
  EXPECT_THAT(advice(), testing::Contains("with 1 GPU a worker instead of 8"));
}

TEST_F(ScheduleTest, CordonDrainAndNotice) {
  Nodes(2);
  const JobId saves = Add({.gpus = 4, .on = {{0, 1}}});
  const JobId cannot = Add({.gpus = 4, .checkpoints = false, .on = {{0, 1}}});
  snapshot.nodes[0].state = NodeState::kCordoned;
  const JobId next = Add({.gpus = 4});
  Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  ASSERT_THAT(Started(decisions), ElementsAre(next));
  EXPECT_THAT(decisions.starts[0].placement, ElementsAre(Placed{1, 1}));
  snapshot.nodes[0].state = NodeState::kDraining;
  EXPECT_THAT(Stopped(Run()), ElementsAre(saves));
  snapshot.nodes[0].until = kNow + 60'000;
  EXPECT_THAT(Stopped(Run()), ElementsAre(saves, cannot));
}

TEST_F(ScheduleTest, WhatNobodyMayPreemptDoesNotBorrow) {
  Nodes(2);
  TwoQueues(8, 8);
  Add({.gpus = 8, .on = {{0, 1}}, .preemptible = false});
  const JobId borrows = Add({.gpus = 8});
  const JobId fixed = Add({.gpus = 4, .preemptible = false});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(borrows));
  EXPECT_EQ(ReasonOf(decisions, fixed), WaitReason::kGuaranteedQuota);
  const Explanation explanation = Explain(snapshot, fixed);
  EXPECT_THAT(explanation.why, HasSubstr("queue a is guaranteed, 8 GPUs; such jobs use 8 GPUs"));
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(fixed)), "");
  const JobId never = Add({.workers = 3, .gpus = 4, .preemptible = false});
  EXPECT_THAT(WhyInfeasible(snapshot, *snapshot.Find(never)), HasSubstr("not preemptible"));
  EXPECT_EQ(ReasonOf(Run(), never), WaitReason::kInfeasible);
  snapshot.queues = {{.name = "a"}};  // without quotas there is nothing to borrow
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(never)), "");
}

// Then what its queue has beyond the guarantee is of the others, who give it back.
TEST_F(ScheduleTest, WhatNobodyMayPreemptIsWithinQuotaFirst) {
  Nodes(2);
  TwoQueues(8, 8);
  const JobId movable = Add({.priority = 1, .gpus = 8, .on = {{0, 1}}});
  Add({.gpus = 8, .on = {{1, 1}}, .preemptible = false});
  Add({.queue = 1, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(movable));
}

TEST_F(ScheduleTest, ExplainDoesNotPromiseAStartThatIsWithheld) {
  Nodes(1);
  Add({.gpus = 6, .on = {{0, 1}}});
  snapshot.nodes[0].capacity[kGpu] = 5;  // a fault: more is held than there is
  Nodes(1, 8);
  EXPECT_THAT(Explain(snapshot, Add({.gpus = 8})).why, HasSubstr("next cycle"));
  snapshot.jobs.back().placement = {{1, 1}};  // another: it is pending
  const Explanation explanation = Explain(snapshot, 2);
  EXPECT_EQ(explanation.reason, WaitReason::kWithheld);
  EXPECT_THAT(explanation.why, HasSubstr("at fault: "));
  EXPECT_THAT(explanation.why, HasSubstr("job 2 is pending and has a placement"));
}

}  // namespace
}  // namespace renzan::cluster
