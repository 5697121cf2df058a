// Jobs that their users or the operator hold.

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWholeNode =
    "command: [a]\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}\nretry_backoff: 0s";

class HoldTest : public ControllerTest {
 protected:
  std::string HeldBecause(JobId job) { return controller_->snapshot().Find(job)->held; }
  std::string ErrorOfRelease(JobId job, const Caller& caller) {
    try {
      controller_->Release(job, caller);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
      return error.what();
    }
    return "";
  }
};

TEST_F(HoldTest, AHeldJobStartsOnlyWhenItIsReleased) {
  const JobId job = Submit(kWholeNode);
  EXPECT_EQ(controller_->Hold(job, ann_), RecordState::kPending);
  Settle();
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(State(job), RecordState::kPending);
    EXPECT_THAT(HeldBecause(job), HasSubstr("held by ann"));
    Restart();
    Settle();
  }
  EXPECT_EQ(controller_->Release(job, ann_), RecordState::kPending);
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(HeldBecause(job), "");
}

TEST_F(HoldTest, WhatRunsContinuesAndDoesNotStartAgain) {
  const JobId job = Submit(kWholeNode);
  Settle();
  EXPECT_EQ(controller_->Hold(job, ann_), RecordState::kRunning);
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(State(job), RecordState::kPending);
  const JobId other = Submit(kWholeNode);
  Settle();
  EXPECT_EQ(State(other), RecordState::kRunning);
  EXPECT_EQ(State(job), RecordState::kPending);
  controller_->Release(job, ann_);
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
}

TEST_F(HoldTest, OnlyTheOperatorReleasesWhatTheOperatorHolds) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  const JobId job = Submit(kWholeNode);
  controller_->Hold(job, operator_);
  controller_->Hold(job, ann_);  // changes nothing
  EXPECT_THAT(ErrorOfRelease(job, ann_), HasSubstr("operator holds job 1"));
  EXPECT_THAT(ErrorOfRelease(job, bob_), HasSubstr("belongs to ann"));
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  EXPECT_EQ(ErrorOfRelease(job, operator_), "");
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(ErrorOfRelease(job, ann_), "") << "a job that nobody holds may be released";
}

TEST_F(HoldTest, AHeldJobCanBeCancelled) {
  const JobId job = Submit(kWholeNode);
  controller_->Hold(job, ann_);
  controller_->Cancel(job, ann_);
  EXPECT_EQ(store_->FindJob(job)->state, RecordState::kCancelled);
  EXPECT_THROW(controller_->Hold(job, ann_), Error);
  Restart();
}

}  // namespace
}  // namespace renzan::cluster::local
