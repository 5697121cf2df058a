// Limits of users, data that must not grow without bound, and lists of jobs.

#include <filesystem>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TimeMs kDay = 86'400'000;

class LimitsTest : public ControllerTest {
 protected:
  // The message of the error that submitting it throws; "" if it is accepted.
  std::string Denial(const std::string& lines, const Caller& caller) {
    try {
      Submit("command: [a]\nresources: {gpu: 1}\n" + lines, caller);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
      return error.what();
    }
    return "";
  }
  void RunToTheEnd(JobId job) {
    CreateDirectories(DirectoryOf(job));
    End(job, EndedBy::kItself, 0);
  }
  // Children that remove directories end immediately.
  void SettleWithRemovals() {
    agent_.copy_status = 0;
    for (size_t before = 0; before != agent_.removed.size() + 1;) {
      before = agent_.removed.size() + 1;
      Settle();
      controller_->ProcessEnded(0);
      Settle();
    }
  }
  double UsedBy(const std::string& user) {
    return controller_->UsageUntilNow()[{"default", user}].gpu_seconds;
  }
};

TEST_F(LimitsTest, BindUsersButNotTheOperator) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  config_.limits = {.max_priority = 5, .max_pending_jobs = 3, .not_preemptible = false};
  Restart();
  EXPECT_THAT(Denial("priority: 6", ann_), HasSubstr("may have at most 5 (limits.max_priority"));
  EXPECT_THAT(Denial("grand_challenge: true", ann_), HasSubstr("limits.grand_challenge"));
  EXPECT_THAT(Denial("preemptible: false", ann_), HasSubstr("limits.not_preemptible"));
  for (const char* each : {"priority: 6", "grand_challenge: true", "preemptible: false"})
    EXPECT_EQ(Denial(each, operator_), "");
  EXPECT_EQ(Denial("priority: 5", ann_), "");

  config_.limits = {.max_pending_specs = "1MiB"};
  Restart();
  for (const NodeShare& share : {NodeShare{"own-0"}, NodeShare{"own-1"}})
    controller_->Cordon(share.node, operator_);
  const std::string large = "environment: {DATA: " + std::string(300'000, 'x') + "}";
  for (int job = 0; job < 3; ++job) EXPECT_EQ(Denial(large, ann_), "");
  EXPECT_THAT(Denial(large, ann_), HasSubstr("limits.max_pending_specs"));
  EXPECT_EQ(Denial(large, operator_), "");
  Restart();  // jobs from before count
  EXPECT_THAT(Denial(large, ann_), HasSubstr("limits.max_pending_specs"));
  for (const char* node : {"own-0", "own-1"}) controller_->Restore(node, operator_);

  config_.limits = {.not_preemptible = true, .grand_challenge = true};
  Restart();
  EXPECT_EQ(Denial("grand_challenge: true", ann_), "");
  EXPECT_EQ(Denial("preemptible: false", ann_), "");
}

TEST_F(LimitsTest, QueuesTakeJobsOfTheirMembersUpToAPriority) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  const Caller with_group{.uid = bob_.uid, .gid = bob_.gid, .name = "bob", .groups = {"vision"}};
  config_.queues["default"] = {};
  config_.queues["vision"].rights = {.members = QueueMembers{{"ann"}, {"vision"}, {}},
                                     .max_priority = 10};
  Restart();
  EXPECT_EQ(Denial("queue: vision", ann_), "");
  EXPECT_EQ(Denial("queue: vision", with_group), "");
  EXPECT_THAT(Denial("queue: vision", bob_),
              HasSubstr("user 'bob' is none of them (queues.vision.members): use default, or ask"));
  EXPECT_EQ(Denial("queue: vision", operator_), "");
  EXPECT_EQ(Denial("queue: vision\npriority: 10", ann_), "");
  EXPECT_THAT(Denial("queue: vision\npriority: 11", ann_),
              HasSubstr("may have at most 10 (queues.vision.max_priority)"));
  EXPECT_THAT(Denial("priority: 1", ann_), HasSubstr("may have at most 0 (limits.max_priority"));
  EXPECT_EQ(Denial("priority: -7", ann_), "");
  EXPECT_EQ(Denial("queue: vision\npriority: 1000", operator_), "");
}

TEST_F(LimitsTest, WhatAQueueHasTakenItKeepsWhenItsRightsChange) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  config_.queues["default"].rights.max_priority = 10;
  Restart();
  const std::string job = "command: [a]\npriority: 10\nresources: {gpu: 4}";
  const JobId running = Submit(job, ann_);
  const JobId other = Submit(job, ann_);
  const JobId pending = Submit(job, ann_);
  Settle();
  config_.queues["default"].rights = {.members = QueueMembers{{"bob"}, {}, {}}, .max_priority = -1};
  Restart();
  Settle();
  EXPECT_NE(Denial("priority: -1", ann_), "");
  EXPECT_EQ(controller_->View(running).record.state, RecordState::kRunning);
  EXPECT_EQ(controller_->View(pending).record.state, RecordState::kPending);
  RunToTheEnd(running);
  RunToTheEnd(other);
  Settle();
  EXPECT_EQ(controller_->View(pending).record.state, RecordState::kRunning);
}

TEST_F(LimitsTest, BoundTheNumberOfPendingJobsOfAUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  config_.limits.max_pending_jobs = 2;
  Restart();
  EXPECT_EQ(Denial("", ann_), "");
  EXPECT_EQ(Denial("", ann_), "");
  EXPECT_THAT(Denial("", ann_), HasSubstr("you have 2 pending jobs, and may have at most 2"));
  EXPECT_EQ(Denial("", bob_), "");
  Settle();  // they start
  EXPECT_EQ(Denial("", ann_), "");
}

TEST_F(LimitsTest, ARejectedJobLeavesNothingInTheSnapshot) {
  const Snapshot before = controller_->snapshot();
  EXPECT_THROW(Submit("command: [a]\nreplicas: 100\nresources: {gpu: 3}", operator_), Error);
  EXPECT_THROW(Submit("command: [a]\nqueue: nowhere", operator_), Error);
  EXPECT_THAT(controller_->snapshot().worker_requests, SizeIs(before.worker_requests.size()));
  EXPECT_THAT(controller_->snapshot().users, SizeIs(before.users.size()));
}

TEST_F(LimitsTest, UnusedWorkerRequestsAreDropped) {
  const JobId kept = Submit("command: [a]\nresources: {cpu: 1.5}");
  Settle();
  for (int i = 1; i <= 300; ++i) {
    scripted_ = Decisions{};
    controller_->Cancel(Submit(fmt::format("command: [a]\nresources: {{memory: {}MiB}}", i)), ann_);
  }
  const Snapshot& snapshot = controller_->snapshot();
  EXPECT_LT(snapshot.worker_requests.size(), 110u);
  EXPECT_EQ(snapshot.worker_requests[snapshot.Find(kept)->request].per_worker[kCpu], 1500);
}

TEST_F(LimitsTest, OldJobsAreDeletedButTheirUsageIsKept) {
  keep_ended_ms_ = 30 * kDay;
  Restart();
  const JobId old = Submit("command: [a]\nresources: {gpu: 2}");
  Settle();
  RunToTheEnd(old);
  const double used = UsedBy("ann");
  EXPECT_GT(used, 0);
  clock_.seconds += 20 * 86400;
  const JobId young = Submit("command: [a]\nresources: {gpu: 1}");
  Settle();
  RunToTheEnd(young);
  const double used_later = UsedBy("ann");
  EXPECT_THAT(agent_.removed, IsEmpty());
  clock_.seconds += 11 * 86400;
  agent_.copy_status = std::nullopt;  // the child still runs
  Settle();
  EXPECT_THAT(agent_.removed, ElementsAre(ElementsAre(controller_->directories().Of(old))));
  EXPECT_EQ(State(old), RecordState::kDone);
  EXPECT_EQ(controller_->watched().size(), 1u);
  agent_.copy_status = 0;
  controller_->ProcessEnded(0);
  Settle();
  EXPECT_THROW(controller_->View(old), Error);
  EXPECT_THAT(store_->Events(old), IsEmpty());
  EXPECT_THAT(store_->Attempts(old), IsEmpty());
  EXPECT_EQ(State(young), RecordState::kDone);
  EXPECT_THAT(controller_->watched(), IsEmpty());
  EXPECT_DOUBLE_EQ(UsedBy("ann"), used_later);
  Restart();
  EXPECT_DOUBLE_EQ(UsedBy("ann"), used_later);
}

// The daemon is killed after the directory was removed, and before the records are deleted.
TEST_F(LimitsTest, DeletionIsFinishedAfterARestart) {
  keep_ended_ms_ = kDay;
  Restart();
  const JobId job = Submit("command: [a]\nresources: {gpu: 2}");
  Settle();
  RunToTheEnd(job);
  const double used = UsedBy("ann");
  clock_.seconds += 2 * 86400;
  controller_->Turn();
  EXPECT_FALSE(FileExists(controller_->directories().Of(job)));
  Restart();
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_DOUBLE_EQ(UsedBy("ann"), used);
  SettleWithRemovals();
  EXPECT_THROW(controller_->View(job), Error);
  EXPECT_DOUBLE_EQ(UsedBy("ann"), used);
  // Its number is not reused, although it was the last one.
  Restart();
  EXPECT_EQ(Submit("command: [a]"), job + 1);
}

TEST_F(LimitsTest, AJobThatCannotBeRemovedBlocksNoOther) {
  keep_ended_ms_ = kDay;
  Restart();
  std::vector<JobId> jobs;
  for (int i = 0; i < 70; ++i) {
    jobs.push_back(Submit("command: [a]\nresources: {gpu: 1}"));
    Settle();
    RunToTheEnd(jobs.back());
  }
  agent_.irremovable = controller_->directories().Of(jobs[3]);
  clock_.seconds += 2 * 86400;
  SettleWithRemovals();
  EXPECT_EQ(State(jobs[3]), RecordState::kDone);
  EXPECT_EQ(controller_->List({}).jobs.size(), 1u);
  EXPECT_THAT(agent_.removed, SizeIs(3));  // in batches
}

TEST_F(LimitsTest, ListsTheNewestEndedJobs) {
  std::vector<JobId> ended;
  for (int i = 0; i < 5; ++i) {
    ended.push_back(Submit("command: [a]\nresources: {gpu: 1}"));
    Settle();
    RunToTheEnd(ended.back());
  }
  const JobId running = Submit("command: [a]\nresources: {gpu: 1}");
  Settle();
  const auto ids = [](const JobList& list) {
    std::vector<JobId> all;
    for (const JobView& job : list.jobs) all.push_back(job.record.id);
    return all;
  };
  const JobList newest = controller_->List({.most_ended = 2});
  EXPECT_THAT(ids(newest), ElementsAre(ended[3], ended[4], running));
  EXPECT_EQ(newest.more, 3);
  EXPECT_EQ(newest.jobs[0].record.spec, "");
  EXPECT_EQ(newest.jobs[2].record.manifest, "");
  const JobList older = controller_->List({.ended = {.before = ended[3]}, .most_ended = 2});
  EXPECT_THAT(ids(older), ElementsAre(ended[1], ended[2]));
  EXPECT_EQ(older.more, 1);
  const TimeMs last_end = *Record(ended[4]).ended;
  EXPECT_THAT(ids(controller_->List({.ended = {.since = last_end}})),
              ElementsAre(ended[4], running));
  EXPECT_THAT(ids(controller_->List({.ended = {.state = RecordState::kRunning}})),
              ElementsAre(running));
  EXPECT_THAT(ids(controller_->List(
                  {.ended = {.queue = "default", .user = "ann", .state = RecordState::kDone},
                   .most_ended = 1})),
              ElementsAre(ended[4]));
  EXPECT_THAT(ids(controller_->List({.ended = {.user = "bob"}})), IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::local
