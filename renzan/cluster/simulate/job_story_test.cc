#include "renzan/cluster/simulate/job_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::simulate {
namespace {

using testing::HasSubstr;

Snapshot OneNodeOfTwoGpus() {
  Snapshot cluster;
  cluster.pools = {{.name = "own", .min_nodes = 1, .max_nodes = 1}};
  cluster.pools[0].capacity[kGpu] = 2;
  cluster.queues = {{.name = "default"}};
  return cluster;
}

// Job 1 saves its work and has run for two hours when job 2 comes.
std::string StoryOf(JobId job, const std::string& policy = "renzan",
                    const Snapshot& cluster = OneNodeOfTwoGpus(), bool check = false) {
  WorkloadJob one{.work_ms = 5 * kHour, .checkpoints = true};
  one.per_worker[kGpu] = 2;
  Workload jobs = {one, one, one};
  jobs[1].submitted = 2 * kHour;
  jobs[1].work_ms = kHour / 2;
  jobs[2].submitted = 2 * kHour + kMinute;
  jobs[2].work_ms = kHour / 4;
  const ScheduleOptions options;
  JobStory story(MakePolicy(policy, 1, options), job, options);
  return story.Text(Simulate(cluster, jobs, story, {.check = check}));
}

TEST(JobStory, SaysForWhomAJobWasStoppedAndWhoWentFirst) {
  const std::string story = StoryOf(1);
  EXPECT_THAT(story, HasSubstr("submitted: 2 GPUs, queue default, saves its work"));
  EXPECT_THAT(story, HasSubstr("starts on own-0"));
  EXPECT_THAT(story, HasSubstr("stopped for job 2 (2 GPUs) (time-shared)"));
  EXPECT_THAT(story, HasSubstr("2 jobs started meanwhile (2 with less service)"));
  EXPECT_THAT(story, HasSubstr("in all; stops: 1"));
}

TEST(JobStory, SaysWhyAJobWaits) {
  EXPECT_THAT(StoryOf(2), HasSubstr("waits 5s: pipelined"));
  EXPECT_THAT(StoryOf(2), HasSubstr("(expected: about 5s, 9 times out of 10 within 5s)"));
  EXPECT_THAT(StoryOf(3), HasSubstr(": resources"));
}

// Which decides every cycle twice.
TEST(JobStory, IsTheSameIfTheSimulationIsChecked) {
  EXPECT_EQ(StoryOf(1, "renzan", OneNodeOfTwoGpus(), true), StoryOf(1));
}

TEST(JobStory, OfOtherPolicies) {
  EXPECT_THAT(StoryOf(1, "kubernetes"), HasSubstr("starts on own-0"));
  EXPECT_THAT(StoryOf(2, "kubernetes"), HasSubstr("waits 3h00m: no room"));
  EXPECT_THAT(StoryOf(1, "las"), HasSubstr("2 jobs started meanwhile, the largest: job 2 (2 GPUs)"))
      << "their rules are not ours";
}

TEST(JobStory, OfAJobWhoseNodeFails) {
  Snapshot cluster = OneNodeOfTwoGpus();
  cluster.pools[0].interruptions_per_hour = 0.2;
  const std::string story = StoryOf(1, "renzan", cluster);
  EXPECT_THAT(story, HasSubstr("a node with its workers failed"));
}

TEST(JobStory, OfAJobThatFails) {
  WorkloadJob job{.work_ms = kHour, .fails_after = {kMinute, 2 * kMinute}, .retries = 1};
  job.per_worker[kGpu] = 2;
  JobStory story(MakePolicy("renzan", 1), 1, {});
  const std::string text = story.Text(Simulate(OneNodeOfTwoGpus(), {job}, story));
  EXPECT_THAT(text, HasSubstr("1m00s  fails; it may start again after 1s"));
  EXPECT_THAT(text, HasSubstr("fails for good; it waited"));
  EXPECT_THAT(text, testing::Not(HasSubstr("a node with its workers failed")));
}

TEST(JobStory, OfAJobThatIsNotThere) {
  try {
    StoryOf(4);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("no job 4"));
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
