#include "renzan/cluster/core/engine/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "renzan/cluster/core/engine/gang.h"

namespace renzan::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimeMs kEarlyMs = 1000;

// A job on one of two nodes, and its facts, driven as an environment does.
class Life {
 public:
  Life() {
    for (const char* name : {"a", "b"})
      snapshot_.nodes.push_back({.name = name, .state = NodeState::kReady});
    job_.id = 1;
    job_.checkpoints = true;
    snapshot_.worker_requests.emplace_back();
  }

  void Start(int node) {
    StartGang(job_, {{node, 2}}, false, now_);
    BeginAttempt(job_, WithNames(snapshot_, job_.placement), facts_, attempt_);
  }
  void Stop(StopReason reason, JobId on_behalf_of) {
    const cluster::Stop stop{1, reason, on_behalf_of};
    StopGang(job_, stop);
    StopAttempt(job_, snapshot_, TextOf(stop), facts_, attempt_);
  }
  void Move(int node) {
    const Resize resize{1, {{node, 1}}, 7};
    MoveGang(job_, resize);
    StopAttempt(job_, snapshot_, TextOf(resize, snapshot_), facts_, attempt_);
  }
  void Evict() {
    EvictGang(job_);
    StopAttempt(job_, snapshot_, "node a failed", facts_, attempt_);
  }
  EndedAttempt End(EndedBy by, int exit_code, TimeMs ran_ms) {
    now_ += ran_ms;
    const AttemptEnd end{.by = by, .exit_code = exit_code, .ended_ms = now_, .ran_ms = ran_ms};
    return EndAttempt(end, {policy_, cancelled_, kEarlyMs}, now_, job_, facts_, attempt_);
  }
  // The job as the next leader, or the next daemon, sees it.
  Job Restored() const {
    const auto placement_of = [&](const NamedPlacement& named) {
      Placement placement;
      for (const NodeShare& share : named)
        placement.push_back({share.node == "a" ? 0 : 1, share.workers});
      return placement;
    };
    Job job;
    job.id = 1;
    job.checkpoints = true;
    RestoreJob(facts_, attempt_, placement_of(attempt_.placement), placement_of(attempt_.target),
               job);
    return job;
  }

  Snapshot snapshot_;
  Job& job_ = snapshot_.jobs.emplace_back();
  JobFacts facts_;
  AttemptFacts attempt_;
  RetryPolicy policy_{.retries = 1000, .backoff_ms = 100, .saves_on_stop = true};
  bool cancelled_ = false;
  TimeMs now_ = 1'000'000;
};

void ExpectSame(const Job& restored, const Job& job) {
  EXPECT_EQ(restored.state, job.state);
  EXPECT_EQ(restored.placement, job.placement);
  EXPECT_EQ(restored.target, job.target);
  EXPECT_EQ(restored.stopping_for, job.stopping_for);
  EXPECT_EQ(restored.started, job.started);
  EXPECT_EQ(restored.last_resize, job.last_resize);
  EXPECT_EQ(restored.backfilled, job.backfilled);
  EXPECT_EQ(restored.waiting_since, job.waiting_since);
  EXPECT_EQ(restored.attained_worker_ms, job.attained_worker_ms);
  EXPECT_EQ(restored.preemptions, job.preemptions);
  EXPECT_EQ(restored.reservation_yields, job.reservation_yields);
  EXPECT_EQ(restored.eligible_at, job.eligible_at);
  EXPECT_EQ(restored.failed_on, job.failed_on);
}

TEST(Attempts, FactsRestoreTheJobAfterEveryTransition) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % below); };
    Life life;
    for (int step = 0; step < 60 && !HasEnded(life.facts_.state); ++step) {
      life.now_ += pick(900'000);
      if (life.job_.state == JobState::kPending) {
        life.Start(pick(2));
      } else if (const int what = pick(6); what == 0 && life.job_.state != JobState::kStopping) {
        life.Stop(pick(2) == 0 ? StopReason::kReservation : StopReason::kRequested, pick(3));
      } else if (what == 1 && life.job_.state == JobState::kRunning) {
        life.Move(pick(2));
      } else if (what == 2) {
        life.Evict();
      } else {
        const int codes[] = {0, 1, 75, 137};
        const auto by = EndedBy{pick(static_cast<int>(EndedBy::kLost) + 1)};
        life.End(by, codes[pick(4)], pick(2'000));
        EXPECT_EQ(life.attempt_, AttemptFacts{});
      }
      if (!HasEnded(life.facts_.state)) ExpectSame(life.Restored(), life.job_);
    }
  }
}

TEST(Attempts, CountsAttemptsFailuresAndTime) {
  Life life;
  life.Start(0);
  EXPECT_EQ(life.End(EndedBy::kWorkerFailed, 1, 400).failed_early_on, "a");
  EXPECT_EQ(life.facts_.state, RecordState::kPending);
  EXPECT_EQ(life.facts_.failures, 1);
  EXPECT_EQ(life.facts_.exit_code, 1);
  EXPECT_EQ(life.facts_.eligible_at, life.now_ + 100);
  EXPECT_THAT(life.job_.failed_on, ElementsAre("a"));

  life.now_ += 500;
  life.Start(1);
  EXPECT_EQ(life.End(EndedBy::kWorkerFailed, 2, 5000).failed_early_on, "");
  EXPECT_EQ(life.facts_.eligible_at, life.now_ + 200);
  life.Start(1);
  EXPECT_EQ(life.End(EndedBy::kItself, 0, 700).outcome.state, RecordState::kDone);
  EXPECT_EQ(life.facts_.state, RecordState::kDone);
  EXPECT_EQ(life.facts_.ended, life.now_);
  EXPECT_EQ(life.facts_.attempts, 3);
  EXPECT_EQ(life.facts_.failures, 2);
  EXPECT_EQ(life.facts_.run_ms, 400 + 5000 + 700);
  EXPECT_EQ(life.facts_.attained_worker_ms, 2 * (400 + 5000 + 700));
  EXPECT_EQ(life.facts_.first_started, 1'000'000);
}

TEST(Attempts, FruitlessRequeuesBackOffUntilOneRunsLong) {
  Life life;
  for (const TimeMs backoff : {100, 200, 400}) {
    life.Start(0);
    life.End(EndedBy::kLost, 0, 10);
    EXPECT_EQ(life.facts_.eligible_at - life.now_, backoff);
  }
  EXPECT_FALSE(life.facts_.exit_code);
  EXPECT_THAT(life.facts_.failed_on, IsEmpty());
  EXPECT_EQ(life.facts_.failures, 0);
  life.Start(0);
  life.End(EndedBy::kItself, 75, 600'000);
  EXPECT_EQ(life.facts_.requeues, 1);
  life.Start(0);
  life.Stop(StopReason::kRequested, 0);
  life.End(EndedBy::kRequest, 75, 10);
  EXPECT_EQ(life.facts_.requeues, 0);
  EXPECT_EQ(life.facts_.eligible_at, 0);
}

TEST(Attempts, ACancelledAttemptEndsTheJobHoweverItEnds) {
  for (int by = 0; by <= static_cast<int>(EndedBy::kLost); ++by) {
    Life life;
    life.cancelled_ = true;
    life.Start(0);
    EXPECT_EQ(life.End(EndedBy{by}, 75, 10).outcome.state, RecordState::kCancelled);
    EXPECT_EQ(life.facts_.state, RecordState::kCancelled);
    EXPECT_EQ(life.facts_.ended, life.now_);
  }
}

TEST(Attempts, AGangWhoseTargetIsGoneStops) {
  Life life;
  life.Start(0);
  life.Move(1);
  Job job;
  job.id = 1;
  RestoreJob(life.facts_, life.attempt_, {{0, 2}}, {}, job);
  EXPECT_EQ(job.state, JobState::kStopping);
  EXPECT_TRUE(job.target.empty());
  EXPECT_EQ(job.stopping_for, 7);
}

}  // namespace
}  // namespace renzan::cluster
