#include <fstream>

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSavesOnRequest =
    "command: [train]\nresources: {gpu: 4}\ncheckpoint: {on_stop: true, on_request: true}";

class MeasuredTest : public ControllerTest {
 protected:
  // Writes the job's status.json; times are in seconds from now.
  void WriteStatus(JobId job, std::optional<double> last_checkpoint,
                   std::optional<double> working_since) {
    const std::string path = fmt::format("{}/run/status.json", controller_->directories().Of(job));
    const auto time = [&](std::optional<double> in) {
      return in ? fmt::format("{}", clock_.seconds + *in) : "null";
    };
    std::ofstream(path) << fmt::format(
        R"({{"step": 5, "steps": 9, "last_checkpoint": {{"time": {}}}, "working_since": {},
            "updated": {}}})",
        time(last_checkpoint), time(working_since), clock_.seconds);
    // A file of another user would be ignored.
    EXPECT_EQ(::chown(path.c_str(), ann_.uid, ann_.gid), 0);
  }
  const Job& Scheduled(JobId job) { return *controller_->snapshot().Find(job); }
  double InterruptionRate() { return controller_->snapshot().pools[0].interruptions_per_hour; }
};

TEST_F(MeasuredTest, MeasuresACheckpointFromRequestToEnd) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  const TimeMs assumed = Scheduled(job).checkpoint_cost_ms;
  clock_.seconds += 100;
  controller_->Checkpoint(job, ann_);
  EXPECT_EQ(controller_->Turn(), controller_now() + 1000);  // it looks for the checkpoint
  clock_.seconds += 20;
  WriteStatus(job, -30, {});  // an earlier one
  controller_->Turn();
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, assumed);
  clock_.seconds += 5;
  WriteStatus(job, -3, {});
  controller_->Turn();
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, 22'000);
  EXPECT_EQ(controller_->View(job).record.measured.checkpoint_ms, 22'000);
  EXPECT_GT(controller_->Turn(), controller_now() + 1000);
  Restart();
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, 22'000);
}

TEST_F(MeasuredTest, StopsWaitingForACheckpointThatNeverComes) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  controller_->Checkpoint(job, ann_);
  EXPECT_EQ(controller_->Turn(), controller_now() + 1000);
  clock_.seconds += 601;
  EXPECT_GT(controller_->Turn(), controller_now() + 1000);
}

TEST_F(MeasuredTest, MeasuresAStopThatSavedTheWork) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  controller_->Preempt(job, ann_);
  clock_.seconds += 41;
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, 42'000);
  // A shorter time at most halves it.
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, 21'000);
}

TEST_F(MeasuredTest, IgnoresAStopThatSavedNothing) {
  const JobId job = Submit(std::string(kSavesOnRequest) + "\nretries: 5\nretry_backoff: 0s");
  Settle();
  const TimeMs assumed = Scheduled(job).checkpoint_cost_ms;
  controller_->Preempt(job, ann_);
  clock_.seconds += 41;
  End(job, EndedBy::kRequest, 137);
  EXPECT_EQ(Scheduled(job).checkpoint_cost_ms, assumed);
}

TEST_F(MeasuredTest, AKillAfterTheGraceMeansThatTheCheckpointIsTooSlow) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  const TimeMs started = controller_now();
  controller_->Preempt(job, ann_);
  clock_.seconds += 30;
  agent_.End(DirectoryOf(job), EndedBy::kRequest, 137, started, controller_now());
  agent_.runs[DirectoryOf(job)].report.end->killed_after_seconds = 29.99999999999997;
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_FALSE(SavesWhenStopped(Scheduled(job)));
  std::string events;
  for (const EventRecord& event : store_->Events(job))
    events += event.kind + ": " + event.text + "\n";
  EXPECT_THAT(events,
              HasSubstr("slow_checkpoint: saving its work takes more than 30 s, longer than its "
                        "grace period of 30 s"));
  EXPECT_THAT(events, HasSubstr("it was killed 30 s after SIGTERM: "));
  Restart();
  Settle();
  EXPECT_FALSE(SavesWhenStopped(Scheduled(job)));
  EXPECT_THAT(controller_->View(job).warning, HasSubstr("longer than its grace period of 30 s"));
  // A fast checkpoint on request does not mean that the one at a stop is fast.
  controller_->Checkpoint(job, ann_);
  clock_.seconds += 2;
  WriteStatus(job, -1, {});
  Settle();
  EXPECT_EQ(controller_->View(job).record.measured.checkpoint_ms, 1000);
  EXPECT_FALSE(SavesWhenStopped(Scheduled(job)));
  // A stop within the grace period does.
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);
  EXPECT_TRUE(SavesWhenStopped(Scheduled(job)));
  EXPECT_EQ(controller_->View(job).warning, "");
}

TEST_F(MeasuredTest, MeasuresAStartUpToTheFirstStep) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  clock_.seconds += 10;
  WriteStatus(job, {}, -3);
  controller_->View(job);
  EXPECT_EQ(Scheduled(job).restart_cost_ms, 7'000);
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);
  clock_.seconds += 10;
  WriteStatus(job, {}, -15);  // from the previous attempt
  controller_->View(job);
  EXPECT_EQ(Scheduled(job).restart_cost_ms, 7'000);
}

TEST_F(MeasuredTest, MeasuresAnAttemptAtItsEndAtTheLatest) {
  const JobId job = Submit(kSavesOnRequest);
  Settle();
  clock_.seconds += 0.5;
  WriteStatus(job, {}, -0.25);
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(Scheduled(job).restart_cost_ms, 250);
}

TEST_F(MeasuredTest, MeasuresHowOftenNodesOfAPoolAreInterrupted) {
  EXPECT_EQ(InterruptionRate(), 0);
  clock_.seconds += 3600 * 60;  // of two nodes
  controller_->FailNode("own-0", operator_);
  EXPECT_DOUBLE_EQ(InterruptionRate(), 1.0 / (24 + 120));
  controller_->Drain("own-1", 120'000, operator_);
  EXPECT_DOUBLE_EQ(InterruptionRate(), 2.0 / (24 + 120));
  clock_.seconds += 120;
  Settle();  // it is gone now: still the same interruption
  EXPECT_NEAR(InterruptionRate(), 2.0 / (24 + 120), 0.0001);
  clock_.seconds += 3600 * 1000;  // without nodes
  Restart();
  EXPECT_NEAR(InterruptionRate(), 2.0 / (24 + 120), 0.0001);
  EXPECT_EQ(controller_->pools().Histories()[0].seen.interruptions, 2);
}

TEST_F(MeasuredTest, AnOperatorsDrainIsNoInterruption) {
  controller_->Drain("own-0", std::nullopt, operator_);
  EXPECT_EQ(InterruptionRate(), 0);
  controller_->FailNode("own-0", operator_);
  EXPECT_GT(InterruptionRate(), 0);
}

TEST_F(MeasuredTest, InvalidDecisionsAreReportedAndMadeAgain) {
  Submit(kSavesOnRequest);
  scripted_ = Decisions{};
  scripted_->starts = {
      {.job = 1, .placement = {{0, 2}}}};  // more workers than it asks for, and than fit
  EXPECT_EQ(controller_->Turn(), controller_now() + 10'000);
  EXPECT_FALSE(controller_->violation().empty());
  EXPECT_EQ(State(1), RecordState::kPending);
  clock_.seconds += 10;
  Settle();
  EXPECT_EQ(State(1), RecordState::kRunning);
  EXPECT_EQ(controller_->violation(), "");
}

}  // namespace
}  // namespace renzan::cluster::local
