// What jobs take over from their submitters: kept as long as they need it, readable by nobody else.

#include <sys/stat.h>

#include "renzan/cluster/local/controller/controller_for_test.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/spec/inherited.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "do-not-tell";

mode_t ModeOf(const std::string& path) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 0777 : 0;
}

class InheritedTest : public ControllerTest {
 protected:
  JobId SubmitWith(const std::string& yaml) {
    return controller_->Submit(
        {.spec = spec::ReadJobSpec(yaml + "\nworking_directory: /tmp\n", "job.yaml"),
         .source = "job.yaml",
         .submit_dir = "/tmp",
         .manifest = "{}",
         .caller = ann_,
         .inherited = spec::Inherited{.environment = {{"TOKEN", kSecret}}, .umask = 027}});
  }
  std::string FileOf(JobId job) {
    return fmt::format("{}/inherited/{}.json", directory_.path(), job);
  }
};

TEST_F(InheritedTest, EveryAttemptHasTheSame) {
  const JobId job = SubmitWith("command: [a]\nretries: 2\nretry_backoff: 0s");
  Restart();
  Settle();
  EXPECT_EQ(RunOf(job).plan.inherited_file, FileOf(job));
  EXPECT_EQ(spec::InheritedFromJson(ReadFile(FileOf(job))).umask, 027u);
  End(job, EndedBy::kItself, 1);
  EXPECT_EQ(Record(job).attempts, 2);
  EXPECT_EQ(RunOf(job).plan.inherited_file, FileOf(job));
  Restart();
  Settle();
  EXPECT_TRUE(FileExists(FileOf(job)));
  End(job, EndedBy::kItself, 0);
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_FALSE(FileExists(FileOf(job)));
}

TEST_F(InheritedTest, OnlyTheDaemonCanReadItAndNoRecordHasIt) {
  const JobId job = SubmitWith("command: [a]");
  Settle();
  EXPECT_EQ(ModeOf(FileOf(job)), 0600u);
  EXPECT_EQ(ModeOf(directory_ / "inherited"), 0700u);
  EXPECT_THAT(PlanToJson(RunOf(job).plan), Not(HasSubstr(kSecret)));
  const JobRecord record = *store_->FindJob(job);
  EXPECT_THAT(record.spec + record.manifest, Not(HasSubstr(kSecret)));
}

TEST_F(InheritedTest, IsRemovedHoweverTheJobEnds) {
  const JobId pending = SubmitWith("command: [a]\nresources: {gpu: 9}");
  controller_->Cancel(pending, ann_);
  EXPECT_FALSE(FileExists(FileOf(pending)));
  const JobId running = SubmitWith("command: [a]");
  Settle();
  controller_->Cancel(running, ann_);
  EXPECT_TRUE(FileExists(FileOf(running)));
  End(running, EndedBy::kRequest, 143);
  EXPECT_FALSE(FileExists(FileOf(running)));
}

// The daemon was killed between the two: after the file of a job that was not committed, before the
// removal of that of a job that has ended.
TEST_F(InheritedTest, WhatNoJobNeedsIsRemovedAtTheStart) {
  const JobId job = SubmitWith("command: [a]");
  WriteFileAtomically(FileOf(job + 1), "{}");
  WriteFileAtomically(FileOf(job) + ".tmp", "{}");
  Restart();
  EXPECT_TRUE(FileExists(FileOf(job)));
  EXPECT_FALSE(FileExists(FileOf(job + 1)));
  EXPECT_FALSE(FileExists(FileOf(job) + ".tmp"));
}

TEST_F(InheritedTest, IsWhatUploadsHaveToo) {
  const JobId job = SubmitWith("command: [a]\nupload_to: s3://b/p\nenvironment: {KEY: k}");
  Settle();
  End(job, EndedBy::kItself, 0);
  ASSERT_EQ(agent_.uploads.size(), 1u);
  EXPECT_EQ(agent_.uploads[0].environment.at("TOKEN"), kSecret);
  EXPECT_EQ(agent_.uploads[0].environment.at("KEY"), "k");
  EXPECT_TRUE(FileExists(FileOf(job)));
  agent_.copy_status = 0;
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_FALSE(FileExists(FileOf(job)));
}

TEST_F(InheritedTest, JobsOfEarlierClientsHaveNone) {
  const JobId job = Submit("command: [a]");
  Settle();
  EXPECT_EQ(RunOf(job).plan.inherited_file, "");
}

}  // namespace
}  // namespace renzan::cluster::local
