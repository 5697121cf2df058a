#include "renzan/cluster/local/controller/retention.h"

#include <gmock/gmock.h>

#include <memory>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/controller/fake_agent_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RetentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int attempt = 0; attempt < 5; ++attempt)
      CreateDirectories(directories_.OfAttempt(1, attempt));
  }
  std::unique_ptr<Retention> Make(const RetentionOptions& options) {
    return std::make_unique<Retention>(options, store_, agent_, directories_, watched_);
  }
  void EndedJob(TimeMs ended) {
    store_.Transact([&] {
      JobRecord job;
      job.id = 1;
      job.queue = "q";
      job.user = "ann";
      store_.Put(job);
      job.state = RecordState::kDone;
      job.ended = ended;
      store_.Put(job);
    });
  }

  TemporaryDirectory state_dir_;
  const JobDirectories directories_{state_dir_.path()};
  Store store_{state_dir_ / "state.db"};
  FakeAgent agent_;
  WatchedProcesses watched_;
};

TEST_F(RetentionTest, AnAttemptPushesOutTheOldestOne) {
  const auto retention = Make({.keep_attempts = 3});
  retention->AttemptStarted(1, 2);
  retention->Advance(0);
  EXPECT_THAT(agent_.removed, IsEmpty());
  retention->AttemptStarted(1, 4);
  retention->Advance(0);
  EXPECT_THAT(agent_.removed, ElementsAre(ElementsAre(directories_.OfAttempt(1, 1))));
  EXPECT_EQ(watched_.count(0), 1u);
  EXPECT_EQ(retention->next_look(), kNever);  // until the child has ended
}

TEST_F(RetentionTest, AfterARestartAllOldAttemptsGo) {
  const auto retention = Make({.keep_attempts = 3});
  retention->JobRecovered(1, 5);
  retention->Advance(0);
  EXPECT_THAT(agent_.removed,
              ElementsAre(ElementsAre(directories_.OfAttempt(1, 0), directories_.OfAttempt(1, 1))));
}

TEST_F(RetentionTest, AJobIsDeletedAfterItsDirectory) {
  const auto retention = Make({.keep_ended_ms = 1000});
  EndedJob(5000);
  retention->Advance(6000);
  EXPECT_THAT(agent_.removed, IsEmpty());
  retention->Advance(retention->next_look());
  EXPECT_THAT(agent_.removed, ElementsAre(ElementsAre(directories_.Of(1))));
  EXPECT_TRUE(store_.FindJob(1));
  agent_.copy_status = 0;  // the child has ended
  retention->Advance(8000);
  EXPECT_FALSE(store_.FindJob(1));
  EXPECT_THAT(watched_, IsEmpty());
}

TEST_F(RetentionTest, KeepsWhatCannotBeRemoved) {
  const auto retention = Make({.keep_ended_ms = 1000});
  EndedJob(5000);
  agent_.irremovable = directories_.Of(1);
  agent_.copy_status = 1;
  for (TimeMs now = 10'000; now < 10'005; ++now) retention->Advance(now);
  EXPECT_TRUE(store_.FindJob(1));
  EXPECT_EQ(agent_.removed.size(), 1u);  // not tried again
}

}  // namespace
}  // namespace renzan::cluster::local
