// Jobs of equal priority take turns by the service they have got.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TimeSharingTest : public ScheduleTest {
 protected:
  // A job that fills node 0 and has run for `ran`; saving and restarting takes it a minute.
  JobId AddServed(TimeMs service, TimeMs ran = kHour) {
    const JobId id = Add({.gpus = 8, .on = {{0, 1}}, .ran_ms = ran});
    Job& job = *snapshot.Find(id);
    job.attained_worker_ms = service - ran;
    job.checkpoint_cost_ms = job.restart_cost_ms = 30 * kSecond;
    job.grace_ms = kMinute;
    return id;
  }
};

TEST_F(TimeSharingTest, ANewJobPreemptsOneThatHasHadMuchService) {
  Nodes(1);
  const JobId served = AddServed(5 * kHour);
  const JobId fresh = Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(served));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kTimeShared);
  EXPECT_EQ(decisions.stops[0].on_behalf_of, fresh);
  EXPECT_EQ(ReasonOf(decisions, fresh), WaitReason::kPipelined);
}

TEST_F(TimeSharingTest, NotWithinALevel) {
  Nodes(1);
  AddServed(5 * kHour);
  const JobId other = Add({.gpus = 8});
  snapshot.Find(other)->attained_worker_ms = 4 * kHour;
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(TimeSharingTest, NotAJobOfHigherPriorityNorOneThatCannotSaveItsWork) {
  Nodes(1);
  const JobId served = AddServed(300 * kHour);
  Add({.gpus = 8});
  snapshot.Find(served)->checkpoints = false;
  EXPECT_THAT(Run().stops, IsEmpty());
  snapshot.Find(served)->checkpoints = true;
  snapshot.Find(served)->checkpoint_cost_ms = 2 * snapshot.Find(served)->grace_ms;
  EXPECT_THAT(Run().stops, IsEmpty());
  snapshot.Find(served)->checkpoint_cost_ms = kSecond;
  snapshot.Find(served)->priority = 1;
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(TimeSharingTest, AJobRunsTenTimesAsLongAsItsPreemptionCosts) {
  Nodes(1);
  const JobId served = AddServed(5 * kHour, 9 * kMinute);
  Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow + kMinute);
  snapshot.now += kMinute;
  EXPECT_THAT(Stopped(Run()), ElementsAre(served));
}

TEST_F(TimeSharingTest, LooksAgainWhenAJobThatStartsNowWillHaveHadItsShare) {
  Nodes(1);
  const JobId first = Add({.gpus = 8});
  Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(Started(decisions), ElementsAre(first));
  EXPECT_EQ(decisions.look_again, kNow + kHour);
}

TEST_F(TimeSharingTest, PreemptionsTakeOneHundredthOfAJobsServiceAtMost) {
  Nodes(1);
  const JobId served = AddServed(5 * kHour);
  snapshot.Find(served)->preemptions = 3;  // the fourth minute is earned after 400 minutes
  Add({.gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.stops, IsEmpty());
  EXPECT_EQ(decisions.look_again, kNow + 100 * kMinute);
  snapshot.now += 100 * kMinute;
  EXPECT_THAT(Stopped(Run()), ElementsAre(served));
}

TEST_F(TimeSharingTest, TheMostServedJobYieldsFirst) {
  Nodes(2);
  const JobId less = AddServed(5 * kHour);
  const JobId most = AddServed(40 * kHour);
  snapshot.Find(most)->placement = {{1, 1}};
  snapshot.Find(most)->checkpoint_cost_ms *= 2;
  Add({.gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(most));
  (void)less;
}

// Twice as many workers are twice the service, whatever the job says that it could use.
TEST_F(TimeSharingTest, ServiceCountsTheWorkersThatItHas) {
  Job job{.max_workers = 100'000, .state = JobState::kRunning, .placement = {{0, 1}}, .started = 0};
  EXPECT_EQ(ServiceOf(job, 6 * kHour), 6 * kHour);
  job.placement = {{0, 1}, {1, 1}};
  EXPECT_EQ(ServiceOf(job, 6 * kHour), 12 * kHour);
  job.min_workers = 2;
  EXPECT_EQ(ServiceOf(job, 6 * kHour), 6 * kHour);
}

TEST_F(TimeSharingTest, WithoutLevelsTheOrderIsFirstCome) {
  Nodes(1);
  AddServed(300 * kHour);
  const JobId second = Add({.gpus = 8});
  const JobId third = Add({.gpus = 8});
  snapshot.Find(second)->attained_worker_ms = 100 * kHour;
  const Decisions decisions = Schedule(snapshot, {.levels = {.thresholds_ms = {}}});
  EXPECT_THAT(decisions.stops, IsEmpty());
  ASSERT_EQ(decisions.waits.size(), 2u);
  EXPECT_EQ(decisions.waits[0].job, second);
  (void)third;
}

// Whatever its expected need: a prediction is not work that would be lost.
TEST_F(TimeSharingTest, AReclaimStopsJobsThatLoseNoWorkFirst) {
  Nodes(2);
  TwoQueues(8, 8);
  Add({.queue = 0, .gpus = 8, .checkpoints = false, .on = {{0, 1}}});
  snapshot.jobs.back().run_time.fill(200 * kHour);
  const JobId saves = Add({.queue = 0, .gpus = 8, .on = {{1, 1}}});
  Add({.queue = 1, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(saves));
}

TEST_F(TimeSharingTest, QuotasComeBeforeService) {
  TwoQueues(8, 8);
  Nodes(2);
  AddServed(300 * kHour);  // within the quota of its queue
  const JobId borrower = Add({.gpus = 8, .on = {{1, 1}}});
  Job& borrowing = *snapshot.Find(borrower);
  borrowing.attained_worker_ms = 300 * kHour;
  borrowing.checkpoint_cost_ms = kSecond;
  Add({.gpus = 8});  // of the same queue: it has less service than the others, and may use quota
  const JobId owner = Add({.queue = 1, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_EQ(ReasonOf(decisions, owner), WaitReason::kPipelined);
}

}  // namespace
}  // namespace renzan::cluster
