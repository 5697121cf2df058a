#include "renzan/cluster/local/controller/learned_run_times.h"

#include <gtest/gtest.h>

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

class LearnedRunTimesTest : public ControllerTest {
 protected:
  JobId SubmitNamed(const std::string& name) {
    return Submit(fmt::format("name: {}\ncommand: [x]\nresources: {{gpu: 1}}\n", name));
  }

  // Submits a job and lets it run for `hours`.
  void Run(const std::string& name, double hours) {
    const JobId id = SubmitNamed(name);
    controller_->Turn();
    const TimeMs started = controller_now();
    clock_.seconds += hours * 3600;
    agent_.End(DirectoryOf(id), EndedBy::kItself, 0, started, controller_now());
    controller_->ProcessEnded(id);
    controller_->Turn();
    clock_.seconds += 1;
  }

  const RunTimeQuantiles& Of(JobId job) { return controller_->snapshot().Find(job)->run_time; }
};

TEST_F(LearnedRunTimesTest, ANewJobIsExpectedToRunLikeThoseBefore) {
  const JobId first = SubmitNamed("first");
  EXPECT_EQ(Of(first).back(), 0);
  for (int job = 0; job < 12; ++job) {
    Run("train", 5);
    Run("eval", 0.1);
  }
  EXPECT_GT(Of(SubmitNamed("train"))[2], 3 * kHour);
  EXPECT_LT(Of(SubmitNamed("eval"))[2], kHour);
  EXPECT_EQ(Of(first).back(), 0);  // fixed when it was submitted
}

TEST_F(LearnedRunTimesTest, EstimatesKnowWhatHasEndedSince) {
  const JobId first = SubmitNamed("train");
  for (int job = 0; job < 12; ++job) Run("train", 5);
  const JobId last = SubmitNamed("train");
  const Snapshot snapshot = controller_->SnapshotForEstimates();
  EXPECT_EQ(snapshot.Find(first)->run_time.back(), 0);
  EXPECT_EQ(LatestRunTime(*snapshot.Find(first)), Of(last));
  EXPECT_EQ(controller_->snapshot().Find(first)->run_time_now, std::nullopt);
}

TEST_F(LearnedRunTimesTest, ARestartChangesNoPrediction) {
  for (int job = 0; job < 12; ++job) Run("train", 5);
  const JobId before = SubmitNamed("train");
  for (int job = 0; job < 12; ++job) Run("train", 0.1);
  const JobId after = SubmitNamed("train");
  const RunTimeQuantiles was_before = Of(before), was_after = Of(after);
  EXPECT_NE(was_before, was_after);
  Restart();
  EXPECT_EQ(Of(before), was_before);
  EXPECT_EQ(Of(after), was_after);
  EXPECT_EQ(Of(SubmitNamed("train")), was_after);
}

// An ended job's run time is not forgotten with the job, and each end counts once.
TEST_F(LearnedRunTimesTest, LearnsFromEveryEnd) {
  for (int job = 0; job < 12; ++job) Run("train", 5);
  // Preempted and then cancelled while it waits.
  const JobId cancelled = SubmitNamed("train");
  controller_->Turn();
  clock_.seconds += 3600;
  controller_->Preempt(cancelled, ann_);
  agent_.End(DirectoryOf(cancelled), EndedBy::kRequest, 0, controller_now() - kHour,
             controller_now());
  controller_->ProcessEnded(cancelled);
  controller_->Cancel(cancelled, ann_);
  controller_->Turn();
  // This one never ran.
  controller_->Cancel(SubmitNamed("train"), ann_);
  const std::vector<EndedRunTime> ended = store_->EndedRunTimesAfter(0);
  ASSERT_EQ(ended.size(), 13u);
  EXPECT_EQ(ended.back().number, 13);
  EXPECT_EQ(ended.back().traits.name, "train");
  EXPECT_NEAR(static_cast<double>(ended.back().ran_ms), kHour, 2 * kSecond);
  store_->Transact([&] { store_->DeleteJobs({1, 2, 3, 4, 5}); });
  const RunTimeQuantiles before = Of(SubmitNamed("train"));
  EXPECT_GT(before.back(), 0);
  Restart();
  EXPECT_EQ(Of(SubmitNamed("train")), before);
}

}  // namespace
}  // namespace renzan::cluster::local
