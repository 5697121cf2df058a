#include "renzan/cluster/local/controller/usage_ledger.h"

#include <gtest/gtest.h>

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

constexpr const char* kFourGpus =
    "command: [train]\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}";

class UsageTest : public ControllerTest {};

// Other work of a turn takes time, too: here it stops another job first.
TEST_F(UsageTest, IsCountedFromTheStartOfAnAttempt) {
  const JobId stops = Submit("command: [train]\nresources: {gpu: 4}");  // cannot be moved
  Settle();
  controller_->Drain("own-0", 60'000, operator_);
  const JobId starts = Submit(kFourGpus);
  clock_.tick = 1;
  controller_->Turn();
  clock_.tick = 0;
  ASSERT_EQ(State(stops), RecordState::kStopping);
  ASSERT_EQ(State(starts), RecordState::kRunning);
  clock_.seconds += 100;
  End(starts, EndedBy::kItself, 0);
  const AttemptRecord attempt = store_->Attempts(starts).front();
  EXPECT_DOUBLE_EQ(store_->Usage(starts).gpu_seconds,
                   4 * static_cast<double>(attempt.ended.value() - attempt.started) / 1000);
}

// A daemon that starts handles one job after the other: here it finds that the first one's attempt
// was never started.
TEST_F(UsageTest, IsCountedWhileThereIsNoDaemon) {
  const JobId never = Submit(kFourGpus), runs = Submit(kFourGpus);
  Settle();
  agent_.runs.erase(DirectoryOf(never));
  clock_.seconds += 100;
  Restart();
  ASSERT_EQ(Record(never).state, RecordState::kPending);
  End(runs, EndedBy::kItself, 0);
  EXPECT_DOUBLE_EQ(store_->Usage(runs).gpu_seconds, 404) << "a job ends after a second";
  const AttemptRecord attempt = store_->Attempts(never).front();
  EXPECT_EQ(attempt.ended, attempt.started);
}

// What was used by whom from `from` until before `to`, in GPU-seconds.
class DatedUsageTest : public ControllerTest {
 protected:
  DatedUsageTest() {
    config_.queues["default"] = config_.queues["vision"] = {};
    config_.pools["own"].price_per_hour = 3600;
    Restart();
  }
  double Used(TimeMs from, TimeMs to, const std::string& queue = "default") {
    double sum = 0;
    std::vector<UsageSpan> spans = controller_->RunningUsage();
    UsageSpanKey after{.ended = from - 1, .job = kNever};
    for (const UsageSpan& span : store_->UsageSpansAfter(after, 1000)) spans.push_back(span);
    for (const UsageSpan& span : spans)
      if (span.queue == queue) sum += UsedWithin(span, from, to).gpu_seconds;
    return sum;
  }
};

TEST_F(DatedUsageTest, CountsOnlyWhatRanWithinTheSpan) {
  const TimeMs began = controller_now();
  const JobId ends = Submit(kFourGpus), runs = Submit("command: [a]\nresources: {gpu: 2}");
  Settle();
  clock_.seconds += 99;
  End(ends, EndedBy::kItself, 0);  // after 100 s
  clock_.seconds += 100;
  EXPECT_DOUBLE_EQ(Used(0, kNever), 4 * 100 + 2 * 200);
  EXPECT_DOUBLE_EQ(Used(began + 90'000, began + 110'000), 4 * 10 + 2 * 20) << "one straddles";
  EXPECT_DOUBLE_EQ(Used(began + 150'000, kNever), 2 * 50) << "what runs counts up to now";
  EXPECT_DOUBLE_EQ(Used(began + 150'000, began + 160'000), 2 * 10);
  EXPECT_DOUBLE_EQ(Used(0, began), 0);
  // At an edge, to the one side or the other, and never to both.
  EXPECT_DOUBLE_EQ(Used(began, began + 100'000), 4 * 100 + 2 * 100);
  EXPECT_DOUBLE_EQ(Used(began + 100'000, began + 200'000), 2 * 100);
  Restart();
  EXPECT_DOUBLE_EQ(Used(0, kNever), 4 * 100 + 2 * 200);
  End(runs, EndedBy::kItself, 0);
  const std::vector<UsageSpan> spans = store_->UsageSpansOf(runs);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_DOUBLE_EQ(spans[0].usage.gpu_seconds, store_->Usage(runs).gpu_seconds);
  EXPECT_DOUBLE_EQ(spans[0].usage.cost, store_->Usage(runs).cost);
}

TEST_F(DatedUsageTest, EachAttemptCountsForTheQueueThatTheJobWasIn) {
  const JobId job = Submit(std::string(kFourGpus) + "\nretry_backoff: 0s");
  Settle();
  const TimeMs began = controller_now();
  clock_.seconds += 9;
  controller_->Hold(job, operator_);
  controller_->Preempt(job, operator_);
  End(job, EndedBy::kRequest, 75);  // after 10 s
  controller_->Update(job, {.queue = "vision"}, operator_);
  controller_->Release(job, operator_);
  Settle();
  clock_.seconds += 20;
  const auto of = [&](const char* queue) {
    return controller_->UsageUntilNow()[{queue, "ann"}].gpu_seconds;
  };
  for (int ended = 0; ended < 2; ++ended) {
    EXPECT_DOUBLE_EQ(Used(0, kNever, "default"), 4 * 10);
    EXPECT_DOUBLE_EQ(Used(0, kNever, "vision"), 4 * (20 + ended));
    EXPECT_DOUBLE_EQ(Used(began + 10'000, began + 15'000, "vision"), 4 * 5);
    EXPECT_DOUBLE_EQ(of("default"), 4 * 10) << "so do the sums of all time";
    EXPECT_DOUBLE_EQ(of("vision"), 4 * (20 + ended));
    if (ended == 0) End(job, EndedBy::kItself, 0);
  }
  // What a deleted job used remains.
  store_->Transact([&] { store_->DeleteJobs({job}); });
  EXPECT_DOUBLE_EQ(Used(0, kNever, "vision"), 4 * 21);
}

TEST_F(DatedUsageTest, TimeByWhichTheClockWasSetForwardIsNotUsed) {
  const JobId job = Submit(kFourGpus);
  Settle();
  clock_.seconds += 10;
  controller_->Turn();
  clock_.set_forward = 1000;
  controller_->Turn();
  clock_.seconds += 4;
  EXPECT_DOUBLE_EQ(Used(0, kNever), 4 * 14);
  End(job, EndedBy::kItself, 0);
  EXPECT_DOUBLE_EQ(Used(0, kNever), 4 * 15);
}

class UsedLatelyTest : public ControllerTest {
 protected:
  UsedLatelyTest() {
    config_.queues["default"].fair_share_half_life = "1h";
    config_.queues["other"] = {};
    Restart();
  }
  std::map<QueueAndUser, double> All() {
    return controller_->usage().UsedLately(controller_->snapshot().now);
  }
  double UsedBy(const std::string& user) { return All()[{"default", user}]; }
  const Caller eve_{.uid = 77778, .name = "eve"};
};

TEST_F(UsedLatelyTest, CountsHalfAfterTheHalfLife) {
  const JobId runs = Submit(kFourGpus);
  Submit("command: [a]\nqueue: other\nresources: {gpu: 1}", eve_);
  Settle();
  clock_.seconds += 9;
  End(runs, EndedBy::kItself, 0);
  EXPECT_NEAR(UsedBy("ann"), 4 * 10, 0.1);
  const double before = UsedBy("ann");
  clock_.seconds += 3600;
  EXPECT_DOUBLE_EQ(UsedBy("ann"), before / 2);
  EXPECT_EQ(UsedBy("eve"), 0) << "of another queue";
}

TEST_F(UsedLatelyTest, IsExactlyTheSameAfterARestart) {
  const JobId ends = Submit(kFourGpus), runs = Submit(kSmall);
  Settle();
  clock_.seconds += 0.7;
  const JobId eves = Submit(kSmall, eve_);
  Settle();
  clock_.seconds += 1000.3;
  End(ends, EndedBy::kItself, 0);
  clock_.seconds += 12.345;
  for (int restart = 0; restart < 3; ++restart) {
    const std::map<QueueAndUser, double> before = All();
    ASSERT_EQ(before.size(), 2u);
    Restart();
    EXPECT_EQ(All(), before);
    // Those that have jobs are compared.
    const std::vector<UsedLately> used = controller_->snapshot().queues[0].fair_share->used;
    ASSERT_FALSE(used.empty());
    EXPECT_EQ(used[0].seconds, before.begin()->second);
    clock_.seconds += 77.7;
    if (restart == 1) End(eves, EndedBy::kItself, 0);
  }
  EXPECT_NEAR(UsedBy("ann"), 5 * 1000, 700);
  EXPECT_EQ(State(runs), RecordState::kRunning);
}

TEST_F(UsedLatelyTest, WhoHasUsedLessGoesFirst) {
  const JobId first = Submit(kFourGpus), second = Submit(kFourGpus);
  Settle();
  clock_.seconds += 100;
  const JobId anns = Submit(kFourGpus), eves = Submit(kFourGpus, eve_);
  Settle();
  Restart();
  End(first, EndedBy::kItself, 0);
  EXPECT_EQ(State(anns), RecordState::kPending);
  EXPECT_EQ(State(eves), RecordState::kRunning);
  End(second, EndedBy::kItself, 0);
  EXPECT_EQ(State(anns), RecordState::kRunning);
}

TEST_F(UsedLatelyTest, IsNotCountedWhileItIsOff) {
  config_.queues["default"].fair_share_half_life = "0s";
  Restart();
  const JobId runs = Submit(kFourGpus);
  Settle();
  clock_.seconds += 100;
  End(runs, EndedBy::kItself, 0);
  EXPECT_TRUE(store_->UsedLately().empty());
  config_.queues["default"].fair_share_half_life = "1h";
  Restart();
  EXPECT_EQ(UsedBy("ann"), 0);
}

// What was used of GPUs says nothing about CPUs.
TEST_F(UsedLatelyTest, IsOfOneKind) {
  const JobId runs = Submit(kFourGpus + std::string("\nqueue: default"));
  Settle();
  clock_.seconds += 100;
  End(runs, EndedBy::kItself, 0);
  EXPECT_GT(UsedBy("ann"), 400);
  config_.pools["own"].resources.gpu = 0;
  Restart();
  EXPECT_EQ(UsedBy("ann"), 0);
  const JobId cores = Submit("command: [a]\nresources: {cpu: 2}");
  Settle();
  clock_.seconds += 99;
  End(cores, EndedBy::kItself, 0);
  EXPECT_NEAR(UsedBy("ann"), 2 * 100, 2);
}

}  // namespace
}  // namespace renzan::cluster::local
