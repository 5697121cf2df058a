#include "renzan/cluster/core/preempt/cadence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimeMs kMinute = 60'000;

TEST(CheckpointInterval, FollowsYoung) {
  // sqrt(2 * 10 s * 3600 s) = 268.3 s
  EXPECT_EQ(CheckpointInterval(10'000, 1.0, 10 * kMinute), 268'328);
  // Four times the hazard, or a quarter of the cost: half the interval.
  EXPECT_EQ(CheckpointInterval(10'000, 4.0, 10 * kMinute), 134'164);
  EXPECT_EQ(CheckpointInterval(2'500, 1.0, 10 * kMinute), 134'164);
}

TEST(CheckpointInterval, IsBounded) {
  EXPECT_EQ(CheckpointInterval(10'000, 0.01, 10 * kMinute), 10 * kMinute);
  EXPECT_EQ(CheckpointInterval(10'000, 0, 10 * kMinute), 10 * kMinute);
  EXPECT_EQ(CheckpointInterval(10'000, 1e-300, 10 * kMinute), 10 * kMinute);
  EXPECT_EQ(CheckpointInterval(0, 1.0, 10 * kMinute), 10'000);
  EXPECT_EQ(CheckpointInterval(60'000, 1'000, 10 * kMinute), 60'000);
}

class Cadence : public testing::Test {
 protected:
  Cadence() {
    snapshot.now = 100 * kMinute;
    snapshot.pools = {{.name = "own"},
                      {.name = "spot", .spot = true, .interruptions_per_hour = 0.5}};
    snapshot.nodes = {{.pool = 0}, {.pool = 1, .spot = true}, {.pool = 1, .spot = true}};
    snapshot.worker_requests = {{}};
    // Two spot nodes: one interruption an hour, 268 s.
    snapshot.jobs = {{.id = 1,
                      .checkpoints = true,
                      .state = JobState::kRunning,
                      .placement = {{1, 1}, {2, 1}},
                      .started = snapshot.now - 268'328,
                      .checkpoint_cost_ms = 10'000}};
  }
  Decisions Ask() {
    Decisions decisions = before;
    RequestCheckpoints(snapshot, 10 * kMinute, decisions);
    return decisions;
  }
  Job& job() { return snapshot.jobs[0]; }

  Snapshot snapshot;
  Decisions before;
};

TEST_F(Cadence, RequestsOnceTheIntervalHasPassed) {
  EXPECT_THAT(Ask().checkpoints, ElementsAre(1));
  EXPECT_EQ(Ask().look_again, kNever);
  job().last_checkpoint = snapshot.now - 268'327;
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  EXPECT_EQ(Ask().look_again, snapshot.now + 1);
  before.look_again = snapshot.now;
  EXPECT_EQ(Ask().look_again, snapshot.now);
}

TEST_F(Cadence, RespectsTheJobsMaximumInterval) {
  job().started = snapshot.now - 100'000;
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  job().max_checkpoint_interval_ms = 100'000;
  EXPECT_THAT(Ask().checkpoints, ElementsAre(1));
}

TEST_F(Cadence, IgnoresCheckpointsFromBeforeTheStart) {
  job().started = snapshot.now - 1;
  job().last_checkpoint = 0;
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
}

TEST_F(Cadence, OnlyOnInterruptibleNodes) {
  job().placement = {{0, 2}};
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  EXPECT_EQ(Ask().look_again, kNever);
  job().placement = {{0, 1}, {1, 1}};  // half the hazard: 379 s
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  EXPECT_EQ(Ask().look_again, job().started + 379'473);
}

TEST_F(Cadence, OnlyRunningJobsThatCheckpointAndAreNotStopped) {
  job().checkpoints = false;
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  job().checkpoints = true;
  job().state = JobState::kStopping;
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  job().state = JobState::kRunning;
  before.stops = {{1, StopReason::kNodeLeaving}};
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
  before.stops = {};
  before.resizes = {{1, {{1, 1}}}};
  EXPECT_THAT(Ask().checkpoints, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster
