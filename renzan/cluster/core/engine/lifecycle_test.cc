#include "renzan/cluster/core/engine/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Transition::Kind;

constexpr JobId kJob = 7;

class LifecycleTest : public ::testing::Test, private Journal, private Workers {
 protected:
  LifecycleTest() {
    for (const char* name : {"a", "b"})
      snapshot_.nodes.push_back({.name = name, .capacity = {{2, 0, 0}}});
    snapshot_.worker_requests.push_back({.per_worker = {{1, 0, 0}}});
    snapshot_.users.emplace_back();
    snapshot_.queues.emplace_back();
    snapshot_.jobs.push_back({.id = kJob, .max_workers = 2, .checkpoints = true});
  }

  Job& job() { return snapshot_.jobs[0]; }
  void StartOn(int node) { Start({kJob, {{node, 2}}, false}); }
  void Start(const cluster::Start& start) {
    Decisions decisions;
    decisions.starts.push_back(start);
    lifecycle_.CarryOut(decisions);
  }
  void MoveTo(int node) {
    Decisions decisions;
    decisions.resizes.push_back({kJob, {{node, 2}}});
    lifecycle_.CarryOut(decisions);
  }
  EndedAttempt End(EndedBy by, int exit_code, bool may_restart = true) {
    clock_.seconds += 1;
    const TimeMs now = clock_.UnixMs();
    const AttemptEnd end{.by = by, .exit_code = exit_code, .ended_ms = now, .ran_ms = 1000};
    return lifecycle_.Finish(kJob, end, {retries_, false, 0}, now, may_restart);
  }

  // What happened, in order: "commit started", "start", ...
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  JobFacts facts_;
  AttemptFacts attempt_;
  bool disk_is_full_ = false;
  std::vector<bool> offered_ = {true, true};
  std::string text_;
  Snapshot snapshot_;

 private:
  ManualClock clock_;

  const JobFacts& FactsOf(JobId) const override { return facts_; }
  const AttemptFacts& AttemptOf(JobId) const override { return attempt_; }
  void Commit(const Transition& transition) override {
    static const std::map<Kind, std::string> names = {{Kind::kStarted, "started"},
                                                      {Kind::kStopping, "stopping"},
                                                      {Kind::kResizing, "resizing"},
                                                      {Kind::kEvicted, "evicted"},
                                                      {Kind::kCancelling, "cancelling"},
                                                      {Kind::kCancelled, "cancelled"},
                                                      {Kind::kEnded, "ended"}};
    if (disk_is_full_) Fail(ErrorCode::kIo, "disk full");
    log_.push_back("commit " + names.at(transition.kind));
    facts_ = transition.facts;
    attempt_ = transition.attempt;
    text_ = transition.text;
  }
  void Commit(const std::vector<std::pair<JobId, NamedPlacement>>&,
              const std::vector<JobId>&) override {}
  NamedPlacement Assign(const Job&, const Placement& placement) override {
    return WithNames(snapshot_, placement);
  }
  const Resources* Offered(int node) const override {
    return offered_[static_cast<size_t>(node)] ? &snapshot_.nodes[node].capacity : nullptr;
  }
  void Start(JobId) override { log_.push_back("start"); }
  void Stop(JobId) override { log_.push_back("stop"); }
  void Checkpoint(JobId) override { log_.push_back("checkpoint"); }
  void Change(const NodeChange&) override {}
  void Ended(JobId, const Placement& placement, const EndedAttempt&) override {
    log_.push_back("ended on " + snapshot_.nodes[placement[0].node].name);
  }

  const RetryPolicy retries_ = {.retries = 0, .saves_on_stop = true};
  std::vector<std::string> log_;

 protected:
  Lifecycle lifecycle_{snapshot_, *this, *this, clock_};
};

TEST_F(LifecycleTest, CommitsBeforeItActs) {
  StartOn(0);
  EXPECT_THAT(TakeLog(), ElementsAre("commit started", "start"));
  EXPECT_EQ(text_, "attempt 0 on a (2 workers)");
  EXPECT_EQ(facts_.state, RecordState::kRunning);
  lifecycle_.Stop(kJob, "ann");
  EXPECT_THAT(TakeLog(), ElementsAre("commit stopping", "stop"));
  EXPECT_THAT(attempt_.stop_reason, HasSubstr("ann"));
  EXPECT_EQ(End(EndedBy::kRequest, 75).outcome.state, RecordState::kPending);
  EXPECT_THAT(TakeLog(), ElementsAre("commit ended", "ended on a"));
  EXPECT_EQ(job().state, JobState::kPending);
  EXPECT_EQ(attempt_, AttemptFacts());
}

TEST_F(LifecycleTest, NothingHappensThatCannotBeCommitted) {
  disk_is_full_ = true;
  EXPECT_THROW(StartOn(0), Error);
  EXPECT_EQ(job().state, JobState::kPending);
  EXPECT_THROW(lifecycle_.Cancel(kJob, "by ann"), Error);
  disk_is_full_ = false;
  StartOn(0);
  TakeLog();
  disk_is_full_ = true;
  EXPECT_THROW(lifecycle_.Stop(kJob, "ann"), Error);
  EXPECT_THROW(lifecycle_.Evict(kJob, "node a failed"), Error);
  EXPECT_THROW(lifecycle_.Cancel(kJob, "by ann"), Error);
  EXPECT_THROW(MoveTo(1), Error);
  EXPECT_THROW(End(EndedBy::kItself, 0), Error);
  EXPECT_EQ(job().state, JobState::kRunning);
  EXPECT_THAT(TakeLog(), IsEmpty());
}

TEST_F(LifecycleTest, AMovedGangStartsWhereItsRoomIs) {
  StartOn(0);
  MoveTo(1);
  EXPECT_THAT(TakeLog(), ElementsAre("commit started", "start", "commit resizing", "stop"));
  End(EndedBy::kRequest, 75);
  EXPECT_THAT(TakeLog(), ElementsAre("commit ended", "ended on a", "commit started", "start"));
  EXPECT_EQ(job().placement, (Placement{{1, 2}}));
  EXPECT_EQ(facts_.attempts, 2);
}

TEST_F(LifecycleTest, AMovedGangWaitsWithoutItsRoom) {
  StartOn(0);
  for (const bool offered : {false, true}) {
    MoveTo(1);
    offered_[1] = offered;
    TakeLog();
    // Where there is room, its user has changed it meanwhile.
    End(EndedBy::kRequest, 75, /*may_restart=*/!offered);
    EXPECT_THAT(TakeLog(), ElementsAre("commit ended", "ended on a"));
    EXPECT_EQ(job().state, JobState::kPending);
    StartOn(0);
  }
  MoveTo(1);
  snapshot_.nodes[1].state = NodeState::kDraining;
  End(EndedBy::kRequest, 75);
  EXPECT_EQ(job().state, JobState::kPending);
}

TEST_F(LifecycleTest, AnEvictedGangIsNotMoved) {
  StartOn(0);
  MoveTo(1);
  lifecycle_.Evict(kJob, "node b, to which it was to move, failed");
  EXPECT_EQ(attempt_.target, NamedPlacement());
  End(EndedBy::kRequest, 75);
  EXPECT_EQ(job().state, JobState::kPending);
}

TEST_F(LifecycleTest, CancelEndsAPendingJobAndStopsOthers) {
  StartOn(0);
  TakeLog();
  EXPECT_EQ(lifecycle_.Cancel(kJob, "by ann"), RecordState::kStopping);
  EXPECT_THAT(TakeLog(), ElementsAre("commit cancelling", "stop"));
  End(EndedBy::kRequest, 75);
  EXPECT_EQ(lifecycle_.Cancel(kJob, "by ann"), RecordState::kCancelled);
  EXPECT_THAT(TakeLog(), ElementsAre("commit ended", "ended on a", "commit cancelled"));
  EXPECT_TRUE(facts_.ended);
}

}  // namespace
}  // namespace renzan::cluster
