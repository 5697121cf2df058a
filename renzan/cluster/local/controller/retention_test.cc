#include "renzan/cluster/local/controller/retention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

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

TEST_F(RetentionTest, AJobThatLeftOnlyOutputIsDeletedEarlier) {
  for (const char* name : {"/run", "/checkpoints", "/artifacts"})
    CreateDirectories(directories_.Of(1) + name);
  WriteFileAtomically(directories_.Of(1) + "/run/stop.json", "{}");  // not of the job
  const auto retention = Make({.keep_ended_ms = 100'000'000, .keep_output_ms = 1000});
  EndedJob(5000);
  retention->Advance(7000);
  EXPECT_THAT(agent_.removed, IsEmpty()) << "not just after the daemon's start";
  TimeMs now = 7000;
  for (; agent_.removed.empty() && now < 10'000'000; now = retention->next_look())
    retention->Advance(now);
  EXPECT_THAT(agent_.removed, ElementsAre(ElementsAre(directories_.Of(1))));
  agent_.copy_status = 0;
  retention->Advance(3'700'000);
  EXPECT_FALSE(store_.FindJob(1));
}

TEST_F(RetentionTest, WhatMayBeAModelIsKept) {
  CreateDirectories(directories_.Of(1) + "/run");
  WriteFileAtomically(directories_.Of(1) + "/run/model", "precious");
  const auto retention = Make({.keep_output_ms = 1000});
  EndedJob(5000);
  for (TimeMs now = 7000; now < 10'000'000; now = std::max(now + 1, retention->next_look()))
    retention->Advance(now);
  EXPECT_THAT(agent_.removed, IsEmpty());
  EXPECT_TRUE(store_.FindJob(1));
}

TEST_F(RetentionTest, AClockThatWasSetForwardDeletesNothingForADay) {
  constexpr TimeMs kDay = 86'400'000, kJump = 40 * kDay;
  const auto retention = Make({.keep_ended_ms = 30 * kDay});
  EndedJob(5000);
  retention->ClockJumped(kJump, kJump);
  retention->Advance(kJump);
  retention->Advance(kJump + kDay - 1);
  EXPECT_THAT(agent_.removed, IsEmpty());
  EXPECT_LE(retention->next_look(), kJump + kDay);
  retention->Advance(kJump + kDay);
  EXPECT_EQ(agent_.removed.size(), 1u);
}

// As every night.
TEST_F(RetentionTest, AMachineThatWasSuspendedStillRemovesJobs) {
  constexpr TimeMs kDay = 86'400'000;
  const auto retention = Make({.keep_ended_ms = 30 * kDay});
  EndedJob(5000);
  retention->ClockJumped(kDay / 2, 40 * kDay);
  retention->Advance(40 * kDay);
  EXPECT_EQ(agent_.removed.size(), 1u);
}

// Of a job that has ended.
TEST_F(RetentionTest, WhatNobodyReadsIsTrimmed) {
  const std::string job = directories_.Of(1);
  const auto attempt = [&](int number, const char* name) {
    return directories_.OfAttempt(1, number) + name;
  };
  const std::string elsewhere = state_dir_ / "elsewhere";
  for (const std::string& directory :
       {job + "/run", job + "/checkpoints", attempt(0, "/requests"), elsewhere})
    CreateDirectories(directory);
  for (const std::string& file :
       {job + "/checkpoints/step-1", attempt(0, "/plan.json"), attempt(0, "/end.json"),
        attempt(0, "/requests/spare-0"), attempt(0, "/worker-0.log"), attempt(1, "/started.json"),
        attempt(1, "/supervisor.log"), job + "/run/stop.json", elsewhere + "/plan.json"})
    WriteFileAtomically(file, "text");
  WriteFileAtomically(attempt(0, "/supervisor.log"), "");
  std::filesystem::remove(directories_.OfAttempt(1, 2));
  std::filesystem::create_symlink(elsewhere, directories_.OfAttempt(1, 2));
  directories_.Trim(1, 5);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job))
    if (!entry.is_directory()) left.insert(entry.path().string().substr(job.size() + 1));
  EXPECT_THAT(left, ElementsAre("attempt-0/worker-0.log", "attempt-1/supervisor.log",
                                "checkpoints/step-1"));
  EXPECT_FALSE(FileExists(job + "/run")) << "it was empty";
  EXPECT_FALSE(FileExists(attempt(0, "/requests")));
  EXPECT_TRUE(FileExists(elsewhere + "/plan.json")) << "links are not followed";
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
