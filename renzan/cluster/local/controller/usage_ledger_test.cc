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

}  // namespace
}  // namespace renzan::cluster::local
