// What a fault of one job or node withholds, and what it does not.

#include "renzan/cluster/core/validate/withhold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "renzan/cluster/core/testing/validator_testing.h"

namespace renzan::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Queue a has a limit of 17 GPUs and uses 12 (jobs 1 and 2). For job 3 of that queue, job 2 on
// node 1 stops; jobs 4 and 5 start, with the quota that job 2 releases. Job 6 of queue b has
// nothing to do with them.
class WithholdTest : public Validator {
 protected:
  WithholdTest() {
    snapshot.queues[0].limit[kGpu] = 17;
    AddRunning(0, 8, {{0, 1}});
    AddRunning(0, 4, {{1, 1}});
    Add(0, 1).priority = 2;
    Add(0, 4).priority = 1;
    Add(0, 4);
    Add(1, 4);
    decisions.stops = {{2, StopReason::kPreempted, 3}};
    decisions.starts = {{4, {{2, 1}}}, {5, {{2, 1}}}, {6, {{3, 1}}}};
    decisions.waits = {{3, WaitReason::kPipelined}};
  }
  // Less than job 2 uses there.
  void MakeNodeOneFaulty() { snapshot.nodes[1].capacity[kGpu] = 2; }
  static std::vector<JobId> Started(const Validated& validated) {
    std::vector<JobId> jobs;
    for (const Start& start : validated.decisions.starts) jobs.push_back(start.job);
    return jobs;
  }
};

TEST_F(WithholdTest, StartsWithQuotaThatAWithheldStopWouldHaveReleasedWait) {
  EXPECT_THAT(Started(Validate(snapshot, decisions)), ElementsAre(4, 5, 6));
  MakeNodeOneFaulty();
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, IsEmpty());
  EXPECT_THAT(validated.decisions.stops, IsEmpty());
  EXPECT_THAT(Started(validated), ElementsAre(4, 6));  // the one of lower priority waits
  ASSERT_EQ(validated.decisions.waits.size(), 2u);
  for (const Wait& wait : validated.decisions.waits) EXPECT_EQ(wait.reason, WaitReason::kWithheld);
}

// Queue a borrows only once job 4 has started.
TEST_F(WithholdTest, PreemptionsThatRelyOnAWithheldStartAreWithheld) {
  snapshot.queues[0].guaranteed[kGpu] = 12;
  decisions.waits = {
      {3, WaitReason::kResources}, {5, WaitReason::kResources}, {6, WaitReason::kPipelined}};
  decisions.stops = {{1, StopReason::kReclaimed, 6}};
  decisions.starts = {{4, {{1, 1}}}};
  EXPECT_THAT(Validate(snapshot, decisions).decisions.stops, SizeIs(1));
  MakeNodeOneFaulty();
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, IsEmpty());
  EXPECT_THAT(validated.decisions.stops, IsEmpty());
  EXPECT_THAT(validated.decisions.waits, SizeIs(4));
}

// Job 2 moves to node 2 instead of stopping, but a pending job has a worker there, too.
TEST_F(WithholdTest, AMoveToAFaultyNodeIsWithheldFromTheJobThatItWasFor) {
  decisions.stops.clear();
  decisions.resizes = {{2, {{2, 1}}, 3}};
  decisions.starts = {{6, {{3, 1}}}};
  decisions.waits = {
      {3, WaitReason::kPipelined}, {4, WaitReason::kResources}, {5, WaitReason::kResources}};
  EXPECT_THAT(Validate(snapshot, decisions).decisions.resizes, SizeIs(1));
  snapshot.jobs[4].placement = {{2, 1}};
  snapshot.nodes[2].capacity[kGpu] = 4;
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, IsEmpty());
  EXPECT_THAT(validated.decisions.resizes, IsEmpty());
  EXPECT_THAT(Started(validated), ElementsAre(6));
}

TEST_F(WithholdTest, AnInvalidDecisionIsWithheldAndReported) {
  decisions.starts[1].placement = {{3, 3}};  // three workers of a job that has one
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, SizeIs(1));
  EXPECT_THAT(Started(validated), ElementsAre(4, 6));
  EXPECT_THAT(validated.decisions.stops, SizeIs(1));
}

TEST_F(WithholdTest, ReservationsOutliveACycleThatIsWithheldAsAWhole) {
  snapshot.reservations = {{3, {{1, 1}}}};
  decisions.starts.push_back({99, {{3, 1}}});  // no such job
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(Started(validated), IsEmpty());
  EXPECT_EQ(validated.decisions.reservations, snapshot.reservations);
}

TEST_F(WithholdTest, AnInvalidStopIsWithheldWithItsPreemptor) {
  snapshot.jobs[1].preemptible = false;
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, SizeIs(1));
  EXPECT_THAT(validated.decisions.stops, IsEmpty());
  EXPECT_THAT(Started(validated), ElementsAre(4, 6));  // job 5 needs the quota of the victim
}

TEST_F(WithholdTest, OverAllocationWithholdsTheLastToCome) {
  decisions.starts[1].placement = {{3, 1}};
  snapshot.nodes[3].capacity[kGpu] = 6;
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, SizeIs(1));
  EXPECT_THAT(Started(validated), ElementsAre(4, 5));
}

TEST_F(WithholdTest, AnInvalidDecisionAboutNoJobWithholdsAll) {
  decisions.scale_out = {{7, 1}};
  const Validated validated = Validate(snapshot, decisions);
  EXPECT_THAT(validated.violations, SizeIs(1));
  EXPECT_THAT(Started(validated), IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster
