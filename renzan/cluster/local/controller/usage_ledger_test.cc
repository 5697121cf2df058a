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

}  // namespace
}  // namespace renzan::cluster::local
