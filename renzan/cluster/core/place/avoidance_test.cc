#include "renzan/cluster/core/place/avoidance.h"

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AvoidanceTest : public ScheduleTest {
 protected:
  std::string NodeOf(const Decisions& decisions, JobId job) {
    for (const Start& start : decisions.starts)
      if (start.job == job) return snapshot.nodes[start.placement.at(0).node].name;
    return "";
  }

  // Three jobs have just failed there.
  FailingNode Failing(const std::string& node) const {
    return {.node = node, .jobs = 3, .since = snapshot.now, .latest = snapshot.now};
  }

  // It has just failed there.
  void FailedOn(JobId id, const std::vector<std::string>& nodes) {
    Job& job = *snapshot.Find(id);
    job.failed_on = nodes;
    if (job.state == JobState::kPending) job.waiting_since = snapshot.now;
  }
};

TEST_F(AvoidanceTest, AJobStartsWhereItHasNotFailed) {
  Nodes(2);
  const JobId job = Add({.gpus = 1});
  FailedOn(job, {"n0"});
  EXPECT_EQ(NodeOf(Run(), job), "n1");
}

TEST_F(AvoidanceTest, ItWaitsForAnotherNodeWhileThatIsBusy) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}});
  const JobId job = Add({.gpus = 1});
  FailedOn(job, {"n0"});
  EXPECT_THAT(Started(Run()), IsEmpty());
  EXPECT_THAT(
      Explain(snapshot, job).why,
      HasSubstr("n0 is avoided for another 60 min: the job failed there soon after its start"));
}

// It may fail by its own fault, and others hold the node for days.
TEST_F(AvoidanceTest, ItWaitsForAnotherNodeForAnHour) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}});
  const JobId job = Add({.gpus = 1});
  FailedOn(job, {"n0"});
  const TimeMs failed = snapshot.now;
  snapshot.now = failed + kHour - 1;
  EXPECT_THAT(Started(Run()), IsEmpty());
  EXPECT_EQ(Run().look_again, failed + kHour);
  snapshot.now = failed + kHour;
  EXPECT_EQ(NodeOf(Run(), job), "n0");
  snapshot.Find(job)->eligible_at = failed + kHour;
  EXPECT_THAT(Started(Run()), IsEmpty()) << "the hour begins after its back-off";
}

TEST_F(AvoidanceTest, ItTakesWhatItAvoidsIfNothingElseCouldEverServeIt) {
  Nodes(2);
  const JobId everywhere = Add({.gpus = 1}), large = Add({.workers = 2, .gpus = 6});
  FailedOn(everywhere, {"n0", "n1"});
  FailedOn(large, {"n0"});
  EXPECT_THAT(Started(Run()), ElementsAre(everywhere, large));
}

TEST_F(AvoidanceTest, ACordonedNodeDoesNotServeIt) {
  Nodes(2);
  snapshot.nodes[1].state = NodeState::kCordoned;
  const JobId job = Add({.gpus = 1});
  FailedOn(job, {"n0"});
  EXPECT_EQ(NodeOf(Run(), job), "n0");
}

TEST_F(AvoidanceTest, ANodeThatCanBeBoughtServesIt) {
  snapshot.pools = {{.name = "spare",
                     .capacity = {.amount = {64'000, 512 * 1024, 8}},
                     .max_nodes = 1,
                     .boot_ms = kMinute}};
  Nodes(1);
  const JobId job = Add({.gpus = 1});
  FailedOn(job, {"n0"});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), IsEmpty());
  EXPECT_EQ(decisions.scale_out.size(), 1u);
}

TEST_F(AvoidanceTest, AGrowingJobAvoidsTheNodeToo) {
  Nodes(3, 1);
  const JobId job = Add({.workers = 1, .max_workers = 3, .gpus = 1, .on = {{0, 1}}});
  FailedOn(job, {"n1"});
  const Decisions decisions = Run();
  ASSERT_EQ(decisions.resizes.size(), 1u);
  EXPECT_THAT(decisions.resizes[0].target, ElementsAre(Placed{0, 1}, Placed{2, 1}));
}

// Its queue's guarantee was made smaller while it ran, so it could not start anywhere.
TEST_F(AvoidanceTest, AJobBeyondItsQuotaAvoidsTheNodeToo) {
  Nodes(3);
  snapshot.queues[0].guaranteed[kGpu] = 1;
  const JobId job =
      Add({.workers = 2, .max_workers = 3, .gpus = 4, .on = {{0, 2}}, .preemptible = false});
  snapshot.nodes[0].state = NodeState::kDraining;  // it must move
  FailedOn(job, {"n1"});
  for (const Resize& resize : Run().resizes)
    EXPECT_THAT(resize.target, testing::Not(testing::Contains(testing::Field(&Placed::node, 1))));
  snapshot.Find(job)->failed_on.clear();
  EXPECT_EQ(Run().resizes.size(), 1u) << "it would not move in any case";
}

// --- Nodes on which other jobs of its user fail.

TEST_F(AvoidanceTest, AUsersJobsAvoidWhereOthersOfItsFail) {
  Nodes(2);
  const JobId ann = Add({.gpus = 1}), bob = Add({.gpus = 1, .user = 1});
  snapshot.users[0].failing_on = {Failing("n0")};
  const Decisions decisions = Run();
  EXPECT_EQ(NodeOf(decisions, ann), "n1");
  EXPECT_NE(NodeOf(decisions, bob), "");
  snapshot.users[0].failing_on = {Failing("n1")};
  EXPECT_EQ(NodeOf(Run(), ann), "n0");
}

TEST_F(AvoidanceTest, TheyWaitForOthersForAnHour) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}, .user = 1});
  const JobId job = Add({.gpus = 1});
  snapshot.users[0].failing_on = {Failing("n0")};
  EXPECT_THAT(Started(Run()), IsEmpty());
  EXPECT_THAT(Explain(snapshot, job).why,
              HasSubstr("n0 is avoided for another 60 min: 3 jobs of user ann failed there soon "
                        "after their start, and none has survived"));
  const TimeMs end = snapshot.now + kHour;
  snapshot.now = end - 1;
  EXPECT_THAT(Started(Run()), IsEmpty());
  EXPECT_EQ(Run().look_again, end);
  snapshot.now = end;
  EXPECT_EQ(NodeOf(Run(), job), "n0");
}

// Whoever submits it after a minute may have mended it.
TEST_F(AvoidanceTest, WhatIsSubmittedLaterDoesNotAvoid) {
  Nodes(2);
  Add({.gpus = 8, .checkpoints = false, .on = {{1, 1}}, .user = 1});
  const JobId job = Add({.gpus = 1});
  FailingNode failing = Failing("n0");
  failing.since = snapshot.Find(job)->submitted - kMinute;
  snapshot.users[0].failing_on = {failing};
  EXPECT_THAT(Started(Run()), IsEmpty());
  --snapshot.users[0].failing_on[0].since;
  EXPECT_EQ(NodeOf(Run(), job), "n0");
}

// His program is broken, or nothing else can serve them.
TEST_F(AvoidanceTest, WhereAllNodesAreAlikeNothingWaits) {
  Nodes(2);
  const JobId job = Add({.gpus = 1}), failed = Add({.gpus = 1});
  snapshot.users[0].failing_on = {Failing("n0"), Failing("n1")};
  FailedOn(failed, {"n0"});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(job, failed));
  EXPECT_EQ(NodeOf(decisions, failed), "n1") << "where it has failed itself weighs more";
}

TEST_F(AvoidanceTest, AnExcludedNodeIsNeverUsed) {
  Nodes(2);
  WorkerRequest elsewhere{.excluded_nodes = {"n0"}}, nowhere{.excluded_nodes = {"n0", "n1"}};
  const JobId job = Add({.gpus = 8, .request = elsewhere});
  const JobId second = Add({.gpus = 8, .request = elsewhere});
  const JobId never = Add({.gpus = 1, .request = nowhere});
  const Decisions decisions = Run();
  EXPECT_EQ(NodeOf(decisions, job), "n1");
  EXPECT_EQ(ReasonOf(decisions, second), WaitReason::kFragmented);
  EXPECT_EQ(ReasonOf(decisions, never), WaitReason::kInfeasible);
  EXPECT_THAT(Explain(snapshot, second).why, HasSubstr("n0 is excluded by the job"));
  EXPECT_THAT(Explain(snapshot, never).why, HasSubstr("it excludes every node: n0, n1"));
}

// The validator finds out for itself.
TEST_F(AvoidanceTest, TheValidatorSeesViolations) {
  Nodes(2);
  const JobId avoids = Add({.gpus = 1});
  const JobId excludes = Add({.gpus = 1, .request = {.excluded_nodes = {"n0"}}});
  FailedOn(avoids, {"n0"});
  Decisions decisions;
  decisions.starts = {{avoids, {{0, 1}}}, {excludes, {{0, 1}}}};
  EXPECT_THAT(
      ValidateDecisions(snapshot, decisions),
      testing::IsSupersetOf({HasSubstr("job 1 gets workers on node n0, where it failed"),
                             HasSubstr("job 2 gets workers on node n0, which it excludes")}));
  FailedOn(avoids, {});
  snapshot.users[0].failing_on = {Failing("n0")};
  EXPECT_THAT(ValidateDecisions(snapshot, decisions),
              testing::Contains(HasSubstr(
                  "job 1 gets workers on node n0, where its user's jobs fail, although")));
  snapshot.nodes[1].state = NodeState::kCordoned;
  decisions.starts = {{avoids, {{0, 1}}}};
  decisions.waits = {{excludes, WaitReason::kResources}};
  EXPECT_THAT(ValidateDecisions(snapshot, decisions), IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster
