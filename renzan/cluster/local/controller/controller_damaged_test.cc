// A job whose record in the store is damaged, beside others.

#include <gtest/gtest.h>

#include "renzan/cluster/local/controller/controller_for_test.h"
#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kDocument = "UPDATE jobs SET document = '{' WHERE id = 1";
constexpr const char* kSpecification = "UPDATE job_texts SET spec = 'x' WHERE job = 1";
// Two of them do not fit.
constexpr const char* kWholeCluster =
    "command: [train]\nreplicas: 2\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}\ngrace: 7s";

class ControllerDamagedTest : public ControllerTest {
 protected:
  // The daemon is killed, and the next one finds job 1 so.
  void RestartWith(const char* damage) {
    Kill();
    Database(directory_ / "state.db").Run(damage);
    Restart();
  }
  void Kill() {
    controller_.reset();
    store_.reset();
  }
  // With no jobs.
  void StartAnew() {
    Kill();
    std::filesystem::remove(directory_ / "state.db");
    agent_ = {};
    Restart();
  }
  std::string Told(JobId job) { return Record(job).message; }
};

TEST_F(ControllerDamagedTest, ARunningJobIsStoppedAndHoldsItsRoomUntilThen) {
  for (const char* damage : {kDocument, kSpecification}) {
    SCOPED_TRACE(damage);
    StartAnew();
    Submit(kWholeCluster);
    Settle();
    const std::string running = DirectoryOf(1);
    Submit(kSmall);
    RestartWith(damage);
    Settle();
    EXPECT_EQ(State(1), RecordState::kStopping);
    EXPECT_THAT(controller_->View(1).warning, HasSubstr("damaged"));
    EXPECT_EQ(Record(1).uid, ann_.uid);
    EXPECT_THAT(agent_.runs[running].stops, ElementsAre(7));
    EXPECT_EQ(State(2), RecordState::kPending);

    // The next daemon knows it, too.
    Kill();
    Restart();
    Settle();
    EXPECT_EQ(State(1), RecordState::kStopping);
    EXPECT_EQ(State(2), RecordState::kPending);
    EXPECT_THROW(controller_->Update(1, {.priority = "1"}, ann_), Error);

    End(1, EndedBy::kRequest, 75);
    EXPECT_EQ(State(1), RecordState::kFailed);
    EXPECT_THAT(Told(1), HasSubstr("damaged"));
    EXPECT_THAT(Told(1), HasSubstr("submit it again"));
    EXPECT_EQ(store_->Events(1).back().kind, "failed");
    EXPECT_THAT(store_->Events(1).back().text, HasSubstr("submit it again"));
    EXPECT_THAT(store_->Attempts(1), SizeIs(1));
    EXPECT_EQ(State(2), RecordState::kRunning);
    EXPECT_EQ(Submit(kSmall), 3);
    // It counts as what ann has used, as far as it has.
    const std::map<QueueAndUser, UsageRecord> used = controller_->UsageUntilNow();
    EXPECT_NEAR(used.at({"default", "ann"}).gpu_seconds, 8, 1e-6);
    EXPECT_NEAR(store_->UsageSpansOf(1).at(0).usage.gpu_seconds, 8, 1e-6);
  }
}

TEST_F(ControllerDamagedTest, AJobWithoutWorkersFailsAtOnce) {
  for (const char* damage : {kDocument, kSpecification}) {
    SCOPED_TRACE(damage);
    StartAnew();
    Submit(kSmall);
    controller_->Hold(1, ann_);
    Submit(kSmall);
    RestartWith(damage);
    Settle();
    EXPECT_EQ(State(1), RecordState::kFailed);
    EXPECT_THAT(Told(1), HasSubstr("submit it again"));
    EXPECT_EQ(Record(1).user, "ann");
    EXPECT_EQ(Record(1).uid, damage == kDocument ? kNobodysJob : ann_.uid);
    EXPECT_EQ(State(2), RecordState::kRunning);
    const JobList list = controller_->List({});
    ASSERT_THAT(list.jobs, SizeIs(2));
    EXPECT_EQ(list.jobs[0].record.state, RecordState::kFailed);
    Kill();
    Restart();
    EXPECT_EQ(State(1), RecordState::kFailed);
    EXPECT_EQ(Submit(kSmall), 3);
  }
}

TEST_F(ControllerDamagedTest, AJobThatWasDoneMeanwhileIsDone) {
  Submit(kSmall);
  Settle();
  const std::string running = DirectoryOf(1);
  agent_.End(running, EndedBy::kItself, 0, controller_now(), controller_now() + 500);
  clock_.seconds += 1;
  RestartWith(kDocument);
  Settle();
  EXPECT_EQ(State(1), RecordState::kDone);
  EXPECT_EQ(Record(1).exit_code, 0);
  EXPECT_THAT(controller_->View(1).warning, HasSubstr("damaged"));
}

TEST_F(ControllerDamagedTest, ItsUserMayCancelIt) {
  Submit(kSmall);
  Settle();
  RestartWith(kDocument);
  Settle();
  EXPECT_EQ(controller_->Cancel(1, ann_), RecordState::kStopping);
  End(1, EndedBy::kRequest, 143);
  EXPECT_EQ(State(1), RecordState::kCancelled);
}

// Nobody can say where they are.
TEST_F(ControllerDamagedTest, WorkersWithoutAPlanAreToldToStop) {
  Submit(kSmall);
  Settle();
  const std::string running = DirectoryOf(1);
  agent_.no_plans = true;
  RestartWith(kDocument);
  Settle();
  EXPECT_EQ(State(1), RecordState::kFailed);
  EXPECT_THAT(agent_.runs[running].stops, SizeIs(1));
}

TEST_F(ControllerDamagedTest, IfTheyCannotBeToldTheNextDaemonTriesAgain) {
  Submit(kSmall);
  Settle();
  const std::string running = DirectoryOf(1);
  agent_.no_plans = agent_.fail_requests = true;
  RestartWith(kDocument);
  Settle();
  EXPECT_THAT(agent_.runs[running].stops, IsEmpty());
  EXPECT_FALSE(Record(1).ended);
  EXPECT_EQ(Submit(kSmall), 2);
  agent_.fail_requests = false;
  Kill();
  Restart();
  Settle();
  EXPECT_EQ(State(1), RecordState::kFailed);
  EXPECT_THAT(agent_.runs[running].stops, SizeIs(1));
}

TEST_F(ControllerDamagedTest, WithoutAPlanAJobThatWasDoneIsDone) {
  Submit(kSmall);
  Settle();
  const std::string running = DirectoryOf(1);
  agent_.End(running, EndedBy::kItself, 0, controller_now(), controller_now() + 500);
  clock_.seconds += 1;
  agent_.no_plans = true;
  RestartWith(kDocument);
  Settle();
  EXPECT_EQ(State(1), RecordState::kDone);
  EXPECT_EQ(Record(1).ended, controller_now() - 500);
  EXPECT_THAT(agent_.runs[running].stops, IsEmpty());
}

// The disk damages it while the daemon runs, which knows better.
TEST_F(ControllerDamagedTest, ARunningDaemonWritesItAgain) {
  Submit(kSmall);
  Settle();
  { Database(directory_ / "state.db").Run(kDocument); }
  EXPECT_EQ(State(1), RecordState::kRunning);
  EXPECT_THAT(controller_->View(1).record.spec, HasSubstr("command"));
  const std::string running = directory_ / "jobs/1/attempt-0";
  agent_.End(running, EndedBy::kItself, 0, controller_now(), controller_now());
  controller_->ProcessEnded(1);
  Settle();
  EXPECT_EQ(State(1), RecordState::kDone);
  EXPECT_EQ(Record(1).damaged, "");
  EXPECT_THAT(store_->Attempts(1), SizeIs(1));
}

}  // namespace
}  // namespace renzan::cluster::local
