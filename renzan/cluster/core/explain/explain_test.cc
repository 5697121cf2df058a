#include "renzan/cluster/core/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExplainTest : public ScheduleTest {};

TEST_F(ExplainTest, SaysWhatIsMissingAndWhatWouldHelp) {
  Nodes(2);
  Add({.gpus = 2, .on = {{0, 1}}});
  snapshot.jobs[0].expected_end = kNow + 600'000;
  Add({.gpus = 8, .on = {{1, 1}}});
  snapshot.jobs[1].expected_end = kNow + 100 * kHour;
  const JobId job = Add({.gpus = 8});
  for (Job& each : snapshot.jobs) each.submitted = kNow - 100 * kHour;  // no more to expect
  const Explanation explanation = Explain(snapshot, job);
  EXPECT_THAT(explanation.why, HasSubstr("one worker with 8 GPUs"));
  EXPECT_THAT(explanation.why, HasSubstr("n0 has 6 of 8 GPUs free"));
  EXPECT_THAT(explanation.would_start_with,
              testing::IsSupersetOf({"with 6 GPUs per worker instead of 8",
                                     "with priority 1 instead of 0, before or in place of others",
                                     "if job 1 of queue default ended (2 GPUs)"}));
  EXPECT_EQ(explanation.estimated_start, kNow + 600'000);
  EXPECT_EQ(explanation.estimated_start_p90, kNow + 600'000);
  EXPECT_THAT(explanation.estimate_rests_on, HasSubstr("1 by progress reports or timeouts"));
  EXPECT_EQ(explanation.queue_position, 1);
}

// Its last attempt may have asked to be run again (75), or its supervisor was killed.
TEST_F(ExplainTest, DoesNotSayThatAJobInItsBackoffFailed) {
  Nodes(1);
  const JobId job = Add({});
  snapshot.jobs[0].eligible_at = kNow + 4'000;
  EXPECT_EQ(
      Explain(snapshot, job).why,
      "its last attempt ended before it was done; the next one starts in 4 s at the earliest");
  snapshot.jobs[0].held = "held by ann";
  EXPECT_EQ(Explain(snapshot, job).why, "held by ann");
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

TEST_F(ExplainTest, SuggestedChangesReallyStartTheJob) {
  Nodes(4);
  for (int node = 0; node < 4; ++node) Add({.gpus = 3, .on = {{node, 1}}});
  const JobId job = Add({.workers = 3, .gpus = 8});
  const Explanation explanation = Explain(snapshot, job);
  ASSERT_THAT(explanation.would_start_with,
              testing::Contains("with 5 GPUs per worker instead of 8"));
  snapshot.worker_requests.push_back(snapshot.worker_requests[snapshot.jobs.back().request]);
  snapshot.worker_requests.back().per_worker[kGpu] = 5;
  snapshot.jobs.back().request = static_cast<int>(snapshot.worker_requests.size()) - 1;
  EXPECT_THAT(Started(Run()), ElementsAre(job));
}

TEST_F(ExplainTest, StaysWithinTheCycleBudget) {
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
  EXPECT_THAT(explanation.estimate_rests_on, HasSubstr("too many jobs"));
  cycles = 0;
  Explain(snapshot, job, {.cancelled = [&] { return ++cycles > 3; }});
  EXPECT_LE(cycles, 10);  // each remaining step checks once
}

TEST_F(ExplainTest, SuggestsNothingThatWouldBeRejected) {
  Nodes(1);
  Add({.gpus = 6, .on = {{0, 1}}});
  const JobId job = Add({.gpus = 8});
  ExplainOptions options{.rules = {.max_priority = 0}};
  const auto advice = [&] { return Explain(snapshot, job, options).would_start_with; };
  EXPECT_THAT(advice(), testing::Contains("with 2 GPUs per worker instead of 8"));
  EXPECT_THAT(advice(), testing::Each(testing::Not(HasSubstr("with priority"))));
  options.rules.round_up = [](const Resources& worker) -> std::optional<Resources> {
    if (worker.gpu() > 1) return Resources{.amount = {1'000, 1024, 8}};
    return Resources{.amount = {1'000, 1024, 1}};
  };
  EXPECT_THAT(advice(), testing::Contains("with 1 GPU per worker instead of 8"));
}

TEST_F(ExplainTest, JobsThatAreNotPreemptibleDoNotBorrow) {
  Nodes(2);
  TwoQueues(8, 8);
  Add({.gpus = 8, .on = {{0, 1}}, .preemptible = false});
  const JobId borrows = Add({.gpus = 8});
  const JobId fixed = Add({.gpus = 4, .preemptible = false});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(borrows));
  EXPECT_EQ(ReasonOf(decisions, fixed), WaitReason::kGuaranteedQuota);
  const Explanation explanation = Explain(snapshot, fixed);
  EXPECT_THAT(explanation.why,
              HasSubstr("guaranteed quota of queue a, 8 GPUs; such jobs use 8 GPUs"));
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(fixed)), "");
  const JobId never = Add({.workers = 3, .gpus = 4, .preemptible = false});
  EXPECT_THAT(WhyInfeasible(snapshot, *snapshot.Find(never)), HasSubstr("not preemptible"));
  EXPECT_EQ(ReasonOf(Run(), never), WaitReason::kInfeasible);
  snapshot.queues = {{.name = "a"}};  // without quotas there is nothing to borrow
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(never)), "");
}

TEST_F(ExplainTest, ALimitOfOneQueueLeavesJobsThatAreNotPreemptibleTheirGuaranteedQuota) {
  Nodes(1);
  TwoQueues(4, 0);
  snapshot.queues[1].limit[kCpu] = 6'000;
  const JobId fixed = Add({.gpus = 4, .preemptible = false});
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(fixed)), "");
  EXPECT_THAT(Started(Run()), ElementsAre(fixed));
  snapshot.queues[0].guaranteed = {};  // now there are only limits, and nothing can be borrowed
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(fixed)), "");
  EXPECT_THAT(Started(Run()), ElementsAre(fixed));
}

TEST_F(ExplainTest, AUserCapThatJobsAheadUseUp) {
  Nodes(2);
  snapshot.users[0].max_gpus = 8;
  Add({.gpus = 2, .on = {{0, 1}}});
  Add({.gpus = 4});
  const Explanation explanation = Explain(snapshot, Add({.gpus = 4}));
  EXPECT_EQ(explanation.reason, WaitReason::kUserCap);
  EXPECT_EQ(explanation.why,
            "user ann has a cap of 8 GPUs; running jobs use 2 GPUs, and jobs ahead of it get too "
            "much of the rest");
}

TEST_F(ExplainTest, WhyAJobMayNotUseReservedNodes) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  const JobId owner = Add({.workers = 2, .gpus = 8});
  snapshot.reservations = {{owner, {{0, 1}, {1, 1}}}};
  const JobId waits = Add({.gpus = 4, .checkpoints = false});
  snapshot.now += 100 * kHour;  // the owner has waited for long enough to keep both
  snapshot.jobs[0].expected_end = snapshot.now + kHour;
  const auto why = [&] {
    const Explanation explanation = Explain(snapshot, waits);
    EXPECT_EQ(explanation.reason, WaitReason::kReserved);
    return explanation.why;
  };
  EXPECT_THAT(why(), HasSubstr("a job that checkpoints"));
  Job& job = *snapshot.Find(waits);
  job.checkpoints = true;
  job.reservation_yields = 3;
  EXPECT_THAT(why(), HasSubstr("has made room for such jobs 3 times"));
  job.preemptible = false;
  EXPECT_THAT(why(), HasSubstr("a job that is preemptible may use them"));
  job.checkpoint_cost_ms = job.grace_ms + 90'000;
  EXPECT_THAT(why(), HasSubstr("saving its work took"));
}

TEST_F(ExplainTest, CountsRoomThatOthersWouldMake) {
  Nodes(2);
  TwoQueues(8, 8);
  Add({.workers = 2, .gpus = 8, .checkpoints = true, .on = {{0, 1}, {1, 1}}});
  snapshot.jobs[0].min_workers = 1;  // the other worker is borrowed
  const JobId job = Add({.queue = 1, .workers = 2, .gpus = 8});
  EXPECT_THAT(Explain(snapshot, job).would_start_with,
              testing::Contains("with 1 worker instead of 2"));
}

TEST_F(ExplainTest, AJobThatHasJustStartedIsNotExpectedToEndAtOnce) {
  Nodes(1);
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  snapshot.jobs[0].started = kNow - 2'000;
  const Explanation explanation = Explain(snapshot, Add({.gpus = 8}));
  ASSERT_TRUE(explanation.estimated_start && explanation.estimated_start_p90);
  EXPECT_GT(*explanation.estimated_start, kNow + kHour / 2);
  EXPECT_LT(*explanation.estimated_start, kNow + 2 * kHour);
  EXPECT_GT(*explanation.estimated_start_p90, kNow + 5 * kHour);
  EXPECT_THAT(explanation.estimate_rests_on, HasSubstr("1 submitted before 10 jobs had ended"));
}

// That the nodes for it are ready then, and that it starts much earlier, when a job ends of which
// nothing is known, were two answers to one question.
TEST_F(ExplainTest, AJobForWhichNodesBootStartsWhenTheyAreReady) {
  const Resources capacity{.amount = {64'000, 512 * 1024, 8}};
  snapshot.pools = {{.name = "cloud", .capacity = capacity, .max_nodes = 3, .boot_ms = kHour},
                    {.name = "slow", .capacity = capacity, .labels = {{"gpu", "old"}}}};
  Nodes(1);
  const TimeMs ready = kNow + 9 * kMinute;
  for (const int pool : {0, 1})
    snapshot.nodes.push_back({.name = "boots",
                              .pool = pool,
                              .capacity = capacity,
                              .labels = {{"gpu", pool == 0 ? "new" : "old"}},
                              .state = NodeState::kBooting,
                              .until = pool == 0 ? ready : kNow + 4 * kHour});
  Add({.gpus = 8, .checkpoints = false, .on = {{0, 1}}, .ran_ms = 2'000});
  const JobId job = Add({.gpus = 8, .request = {.required = {{"gpu", "new"}}}});
  const Explanation explanation = Explain(snapshot, job);
  EXPECT_EQ(explanation.reason, WaitReason::kNodesBooting);
  EXPECT_THAT(explanation.why,
              HasSubstr("will be ready in 9 min;"));  // not those of the other pool
  EXPECT_EQ(explanation.estimated_start, ready);
  EXPECT_EQ(explanation.estimated_start_p90, ready);
  // Where the room of the job that runs would do as well, it may be earlier, but not later.
  snapshot.worker_requests[snapshot.jobs.back().request].required.clear();
  const Explanation either = Explain(snapshot, job);
  EXPECT_THAT(either.why, HasSubstr("starts earlier if running jobs make room before that"));
  EXPECT_EQ(either.estimated_start, ready);  // jobs of which nothing is known run for an hour
  EXPECT_EQ(either.estimated_start_p90, ready);
}

// The search for the nearest value of a change may run out of cycles at any step.
TEST_F(ExplainTest, SuggestsNothingElseWithFewerCycles) {
  Nodes(2);
  Add({.gpus = 3, .on = {{0, 1}}});
  Add({.gpus = 5, .on = {{1, 1}}});
  const JobId job = Add({.workers = 9, .gpus = 1});
  const auto advice = [&](int cycles) {
    return Explain(snapshot, job, {.max_cycles = cycles}).would_start_with;
  };
  const std::vector<std::string> all = advice(300);
  EXPECT_THAT(all, testing::Contains("with 8 workers instead of 9"));
  for (int cycles = 1; cycles < 60; ++cycles)
    EXPECT_THAT(advice(cycles), testing::IsSubsetOf(all)) << cycles << " cycles";
}

TEST_F(ExplainTest, RunsNoCycleIfTheRequesterHasGone) {
  Nodes(1);
  Add({.gpus = 6, .on = {{0, 1}}});
  int asked = 0;
  const auto gone = [&] { return ++asked > 0; };
  EXPECT_EQ(Explain(snapshot, Add({.gpus = 8}), {.cancelled = gone}).why, "cancelled");
  EXPECT_EQ(asked, 1);
}

TEST_F(ExplainTest, NamesTheJobsThatAreStopping) {
  Nodes(3);
  for (int node = 0; node < 3; ++node) Add({.gpus = 8, .on = {{node, 1}}});
  const JobId job = Add({.workers = 2, .gpus = 8});
  const auto why = [&] { return Explain(snapshot, job).why; };
  snapshot.jobs[0].state = JobState::kStopping;
  snapshot.jobs[1].state = JobState::kStopping;
  EXPECT_EQ(why(), "waiting for jobs 1 and 2 to save and stop");
  snapshot.jobs[2].state = JobState::kStopping;
  EXPECT_EQ(why(), "waiting for jobs 1, 2 and 3 to save and stop");
  snapshot.jobs[0].stopping_for = snapshot.jobs[2].stopping_for = job;
  EXPECT_EQ(why(), "waiting for jobs 1 and 3 to save and stop");
  snapshot.Find(job)->min_workers = snapshot.Find(job)->max_workers = 1;
  snapshot.jobs[0].state = snapshot.jobs[1].state = JobState::kRunning;
  EXPECT_EQ(why(), "waiting for job 3 to save and stop");
}

TEST_F(ExplainTest, DoesNotPredictAStartThatIsWithheld) {
  Nodes(1);
  Add({.gpus = 6, .on = {{0, 1}}});
  snapshot.nodes[0].capacity[kGpu] = 5;  // a fault: jobs hold more than the capacity
  Nodes(1, 8);
  EXPECT_THAT(Explain(snapshot, Add({.gpus = 8})).why, HasSubstr("next scheduling cycle"));
  snapshot.jobs.back().placement = {{1, 1}};  // another fault: it is pending
  const Explanation explanation = Explain(snapshot, 2);
  EXPECT_EQ(explanation.reason, WaitReason::kWithheld);
  EXPECT_THAT(explanation.why, HasSubstr("inconsistent job or node: "));
  EXPECT_THAT(explanation.why, HasSubstr("job 2 is pending, but has a placement"));
}

class ExplainNodesTest : public ExplainTest {
 protected:
  // Nodes own-0, own-1, ... of 2 GPUs.
  void FixedPool(int nodes) {
    const Resources capacity{.amount = {64'000, 512 * 1024, 2}};
    snapshot.pools = {
        {.name = "own", .capacity = capacity, .min_nodes = nodes, .max_nodes = nodes}};
    for (int node = 0; node < nodes; ++node)
      snapshot.nodes.push_back(
          {.name = "own-" + std::to_string(node), .pool = 0, .capacity = capacity});
  }
  std::vector<std::string> Advice(JobId job, bool operates = true) {
    return Explain(snapshot, job, {.rules = {.operates = operates}}).would_start_with;
  }
};

TEST_F(ExplainNodesTest, NamesANodeThatIsGoneAndWhoCanRestoreIt) {
  FixedPool(3);
  snapshot.nodes[2].state = NodeState::kGone;
  const JobId job = Add({.workers = 3, .gpus = 2});
  EXPECT_THAT(Explain(snapshot, job).why,
              HasSubstr("room now for 2 (1 on own-0, 1 on own-1); own-2 is gone"));
  EXPECT_THAT(Advice(job),
              testing::Contains("if node own-2 were restored (renzan nodes restore own-2)"));
  EXPECT_THAT(Advice(job, /*operates=*/false),
              testing::Contains("if node own-2 were restored (an operator can restore it)"));
  // Of a pool whose nodes are bought and returned, others come.
  snapshot.pools[0].min_nodes = 0;
  EXPECT_THAT(Explain(snapshot, job).why, testing::Not(HasSubstr("gone")));
  EXPECT_THAT(Advice(job), testing::Each(testing::Not(HasSubstr("restored"))));
}

TEST_F(ExplainNodesTest, NamesSeveralThatMustReturnTogether) {
  FixedPool(4);
  for (Node& node : snapshot.nodes) node.state = NodeState::kGone;
  const JobId job = Add({.workers = 2, .gpus = 2});
  EXPECT_THAT(Explain(snapshot, job).why,
              HasSubstr("room now for 0; own-0 is gone, own-1 is gone, own-2 is gone, own-3"));
  EXPECT_THAT(Advice(job),
              testing::Contains("if nodes own-0, own-1 were restored (renzan nodes restore NAME)"));
  EXPECT_THAT(
      Advice(job, /*operates=*/false),
      testing::Contains("if nodes own-0, own-1 were restored (an operator can restore them)"));
}

TEST_F(ExplainNodesTest, DoesNotSuggestToRestoreWhatItsCheckKeepsClosed) {
  FixedPool(2);
  Node& node = snapshot.nodes[1];
  node.state = NodeState::kCordoned;
  node.reason = "its health check ended with 3";
  const JobId job = Add({.workers = 2, .gpus = 2});
  EXPECT_THAT(Explain(snapshot, job).why,
              HasSubstr("own-1 is cordoned (its health check ended with 3)"));
  EXPECT_THAT(Advice(job), testing::Each(testing::Not(HasSubstr("restored"))));
  node.reason = "3 jobs of 2 users failed there";
  node.until = kNow + kHour;  // suspected
  EXPECT_THAT(Advice(job), testing::Contains(HasSubstr("if node own-1 were restored")));
}

// "Too many jobs must end first", where none ran.
TEST_F(ExplainNodesTest, NoStartIsEstimatedThatNeedsANodeOutOfService) {
  FixedPool(2);
  const JobId job = Add({.workers = 2, .gpus = 2});
  Add({.gpus = 1, .on = {{0, 1}}});
  const auto basis = [&] { return Explain(snapshot, job).estimate_rests_on; };
  EXPECT_THAT(basis(), HasSubstr("simulated futures"));
  const char* const kUnknown = "nodes that are out of service must return first";
  for (const NodeState state : {NodeState::kCordoned, NodeState::kDraining, NodeState::kGone}) {
    snapshot.nodes[1].state = state;
    EXPECT_EQ(basis(), kUnknown) << static_cast<int>(state);
  }
  snapshot.nodes[1].state = NodeState::kCordoned;
  snapshot.nodes[1].until = kNow + kHour;  // suspected, and reopened then
  EXPECT_NE(basis(), kUnknown);
}

}  // namespace
}  // namespace renzan::cluster
