// What jobs leave: collected, uploaded, kept.

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControllerTest, AJobIsDoneOnceItsArtifactsAreCollected) {
  const JobId job = Submit("command: [a]\nartifacts: out");
  Settle();
  End(job, EndedBy::kItself, 0);
  ASSERT_EQ(agent_.copies.size(), 1u);
  EXPECT_EQ(agent_.copies[0].first, "/tmp/out");
  EXPECT_EQ(State(job), RecordState::kCollecting);
  EXPECT_FALSE(Record(job).ended);
  Restart();  // copies again
  Settle();
  EXPECT_EQ(agent_.copies.size(), 2u);
  agent_.copy_status = 1;
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_THAT(store_->Events(job).back().text, HasSubstr("could be collected from /tmp/out"));
}

TEST_F(ControllerTest, TheFileThatCouldNotBeCollectedIsNamed) {
  const JobId job = Submit("command: [a]\nartifacts: " + directory_.path());
  Settle();
  End(job, EndedBy::kItself, 0);
  WriteFileAtomically(controller_->directories().Of(job) + "/collect.log",
                      "cp: cannot open 'out/a' for reading: Permission denied\n");
  agent_.copy_status = 1;
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_THAT(
      store_->Events(job).back().text,
      HasSubstr("(cp ended with 1: cp: cannot open 'out/a' for reading: Permission denied)"));
}

TEST_F(ControllerTest, WhatAJobLeavesIsUploadedOnceItsArtifactsAreCollected) {
  const JobId job =
      Submit("command: [a]\nartifacts: out\nupload_to: s3://b/p\nenvironment: {KEY: k}");
  Settle();
  const std::string directory = controller_->directories().Of(job);
  CreateDirectories(directory + "/attempt-0");
  WriteFileAtomically(directory + "/attempt-0/worker-0.log", "words");
  WriteFileAtomically(directory + "/attempt-0/plan.json", "{}");
  End(job, EndedBy::kItself, 0);
  ASSERT_EQ(agent_.copies.size(), 1u);
  EXPECT_TRUE(agent_.uploads.empty());
  EXPECT_THAT(store_->Events(job).back().text, HasSubstr("uploaded to s3://b/p"));
  agent_.copy_status = 1;  // the upload does not depend on it
  controller_->ProcessEnded(job);
  controller_->Turn();
  ASSERT_EQ(agent_.uploads.size(), 1u);
  const Agent::Upload& upload = agent_.uploads[0];
  EXPECT_EQ(upload.to, "s3://b/p");
  EXPECT_EQ(upload.environment.at("KEY"), "k");
  EXPECT_EQ(ReadFile(upload.sources),
            fmt::format("{0}/./run\n{0}/./artifacts\n{0}/./attempt-0/worker-0.log\n", directory));
  WriteFileAtomically(upload.log, "words\nerror: s3://b/p: no such bucket\n");
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_THAT(store_->Events(job).back().text,
              AllOf(HasSubstr("could be collected from /tmp/out (it does not exist)"),
                    HasSubstr("could be uploaded to s3://b/p (renzan upload ended with 1: error: "
                              "s3://b/p: no such bucket)")));
  EXPECT_THAT(Record(job).message, HasSubstr("; not all of its artifacts could be collected"));
}

TEST_F(ControllerTest, UploadingHasTheDeadlineOfCopyingAndCanBeCancelled) {
  for (const bool cancel : {false, true}) {
    const JobId job = Submit("command: [a]\nartifacts: out\nupload_to: s3://b/p");
    Settle();
    agent_.uploads.clear();
    agent_.copy_status.reset();
    End(job, EndedBy::kItself, 0);
    if (cancel) {
      controller_->Cancel(job, ann_);
      Settle();
      EXPECT_TRUE(agent_.uploads.empty());
    } else {
      clock_.seconds += 40;
      agent_.copy_status = 0;
      controller_->ProcessEnded(job);
      controller_->Turn();
      EXPECT_EQ(agent_.uploads.size(), 1u);
      agent_.copy_status.reset();  // the upload hangs
      Settle();
      EXPECT_EQ(State(job), RecordState::kCollecting);
      clock_.seconds += 20;
      Settle();
      EXPECT_THAT(store_->Events(job).back().text,
                  HasSubstr("uploaded to s3://b/p (copying took longer than 60 s"));
    }
    EXPECT_EQ(State(job), RecordState::kDone);
  }
}

TEST_F(ControllerTest, CollectingArtifactsOccupiesNoNodesAndCostsNothing) {
  const std::string spec = "command: [a]\nartifacts: out\nresources: {gpu: 4}\nreplicas: 2";
  const JobId job = Submit(spec);
  const JobId next = Submit(spec);
  Settle();
  End(job, EndedBy::kItself, 0);
  ASSERT_EQ(agent_.copies.size(), 1u);
  EXPECT_EQ(State(job), RecordState::kCollecting);
  EXPECT_EQ(State(next), RecordState::kRunning);
  const double used = controller_->usage().Of(job).gpu_seconds;
  clock_.seconds += 50;
  EXPECT_EQ(controller_->usage().Of(job).gpu_seconds, used);
  EXPECT_EQ(store_->CountByState()["collecting"], 1);
  ASSERT_EQ(controller_->List({}).jobs.size(), 2u);
  EXPECT_EQ(controller_->List({}).jobs[0].record.state, RecordState::kCollecting);
  EXPECT_THROW(controller_->Preempt(job, ann_), Error);
}

TEST_F(ControllerTest, CopyingArtifactsHasADeadline) {
  const JobId job = Submit("command: [a]\nartifacts: out");
  Settle();
  End(job, EndedBy::kItself, 3);
  const TimeMs ended = controller_now();
  agent_.unkillable = true;
  clock_.seconds += 59;
  Settle();
  EXPECT_EQ(State(job), RecordState::kCollecting);
  EXPECT_LE(controller_->Turn(), controller_now() + 1000);  // at the deadline
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(State(job), RecordState::kFailed);
  EXPECT_EQ(Record(job).ended, ended);
  EXPECT_EQ(Record(job).exit_code, 3);
  EXPECT_THAT(store_->Events(job).back().text, HasSubstr("took longer than 60 s"));
}

TEST_F(ControllerTest, CollectingArtifactsCanBeCancelled) {
  const JobId job = Submit("command: [a]\nartifacts: out");
  Settle();
  End(job, EndedBy::kItself, 0);
  ASSERT_EQ(agent_.copies.size(), 1u);
  controller_->Cancel(job, ann_);
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_EQ(State(job), RecordState::kDone);  // its processes had succeeded
  EXPECT_THAT(store_->Events(job).back().text, HasSubstr("not all of its artifacts"));
}

}  // namespace
}  // namespace renzan::cluster::local
