#include "renzan/cluster/simulate/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/cluster/simulate/trace_testing.h"

namespace renzan::cluster::simulate {
namespace {

const std::string kHeader = "timestamp,duration,num_gpus,gpu_time,cluster\n";

Workload Read(const std::string& text, TraceOptions options = {}) {
  options.share_of_one_gpu[kGpu] = 1;
  return ReadTrace(LinesOf(text), "t.csv", options);
}

TEST(Trace, JobsInOrderOfSubmission) {
  const Workload jobs = Read(kHeader +
                             "2017-10-09 00:00:30,66.0,1,66.0,b\n"
                             "2017-10-08 23:59:30,1.5,12,18.0,a\n\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].submitted, 0);
  EXPECT_EQ(jobs[0].queue, "a");
  EXPECT_EQ(jobs[0].work_ms, 1500);
  EXPECT_EQ(jobs[0].max_workers, 2);
  EXPECT_EQ(jobs[0].per_worker.gpu(), 6);
  EXPECT_EQ(jobs[1].submitted, 60'000);
  EXPECT_EQ(jobs[1].gpus(), 1);
}

TEST(Trace, LimitTakesTheFirstToBeSubmitted) {
  const Workload jobs = Read(kHeader +
                                 "2017-10-09 00:00:30,66.0,1,66.0,b\n"
                                 "2017-10-09 00:00:10,66.0,1,66.0,a\n",
                             {.limit = 1});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].queue, "a");
}

TEST(Trace, CheckpointShare) {
  std::string text = kHeader;
  for (int job = 0; job < 1000; ++job) text += "2017-10-09 00:00:30,66.0,1,66.0,b\n";
  const Workload jobs = Read(text, {.checkpoint_share = 0.3});
  int checkpoints = 0;
  for (const WorkloadJob& job : jobs) checkpoints += job.checkpoints;
  EXPECT_NEAR(checkpoints, 300, 60);
  EXPECT_EQ(jobs, Read(text, {.checkpoint_share = 0.3}));
}

TEST(Trace, DrawsSaveAndRestartTimes) {
  std::string text = kHeader;
  for (int job = 0; job < 1000; ++job) text += "2017-10-09 00:00:30,66.0,1,66.0,b\n";
  const Workload jobs = Read(text, {.save_ms = {1'000, 60'000}, .restart_ms = {7'000, 7'000}});
  int short_ones = 0;  // half of them below the geometric mean
  for (const WorkloadJob& job : jobs) {
    EXPECT_GE(job.checkpoint_cost_ms, 1'000);
    EXPECT_LE(job.checkpoint_cost_ms, 60'000);
    EXPECT_LE(job.checkpoint_cost_ms, job.grace_ms);
    EXPECT_EQ(job.restart_cost_ms, 7'000);
    short_ones += job.checkpoint_cost_ms < 7'746;
  }
  EXPECT_NEAR(short_ones, 500, 60);
}

TEST(Trace, SaysWhatIsWrongAndWhere) {
  const std::string good = "2017-10-09 07:01:55,66.0,1,66.0,q\n";
  struct {
    std::string text, says;
  } const cases[] = {
      {"", "t.csv:1: the trace is empty"},
      {"a,b\n", "t.csv:1: the first line of a trace must be timestamp,"},
      {kHeader, "t.csv:1: the trace has no jobs"},
      {kHeader + good + "2017-10-09 07:01:55,66.0,1,66.0\n", "t.csv:3: must have 5 columns"},
      {kHeader + "2017-10-09 07:01:55,66.0,1,66.0,q,x\n", "t.csv:2: must have 5 columns"},
      {kHeader + "2017-02-29 07:01:55,66.0,1,66.0,q\n", "timestamp '2017-02-29 07:01:55'"},
      {kHeader + "2017-10-09 24:01:55,66.0,1,66.0,q\n", "timestamp"},
      {kHeader + "2017-10-09T07:01:55X,66.0,1,66.0,q\n", "timestamp"},
      {kHeader + "2017-10-09 07:01:55,66.0,1,66.0,\"q\n", "t.csv:2: a quoted field"},
      {kHeader + "2017-10-09 07:01:55,-66.0,1,66.0,q\n", "duration '-66.0'"},
      {kHeader + "2017-10-09 07:01:55,nan,1,66.0,q\n", "duration 'nan'"},
      {kHeader + "2017-10-09 07:01:55,66.0,0,66.0,q\n", "num_gpus '0'"},
      {kHeader + "2017-10-09 07:01:55,66.0,1.5,66.0,q\n", "num_gpus '1.5'"},
      {kHeader + "2017-10-09 07:01:55,66.0,2,66.0,q\n", "gpu_time 66.0 is not duration"},
      {kHeader + "2017-10-09 07:01:55,66.0,1,66.0,\n", "t.csv:2: cluster is empty"},
      {kHeader + good + "\n" + good, "t.csv:4: the previous line is blank"},
  };
  for (const auto& [text, says] : cases) {
    try {
      Read(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_THAT(error.what(), testing::HasSubstr(says));
    }
  }
}

TEST(Trace, OtherColumns) {
  const TraceColumns columns{.submitted = "time",
                             .gpus = "replicas",
                             .queue = "",
                             .user = "owner",
                             .name = "app",
                             .duration_of = {{"bert", "2h"}, {"ncf", "90s"}}};
  const Workload jobs =
      Read("app,time,replicas,batch,owner\nbert,107.5,12,32,ann\nncf,110,1,64,bob\n",
           {.columns = columns});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "bert");
  EXPECT_EQ(jobs[0].work_ms, 2 * kHour);
  EXPECT_EQ(jobs[0].gpus(), 12);
  EXPECT_EQ(jobs[1].queue, "default");
  EXPECT_EQ(jobs[1].user, "bob");
  EXPECT_EQ(jobs[1].submitted, 2500);
  const auto error_of = [&](const std::string& text) -> std::string {
    try {
      Read(text, {.columns = columns});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("app,time,gpus,owner\n"),
              testing::HasSubstr("t.csv:1: there is no column 'replicas'"));
  EXPECT_THAT(error_of("app,time,replicas,owner\nvit,1,1,ann\n"),
              testing::HasSubstr("t.csv:2: app 'vit' has no duration"));
}

TEST(Trace, IsoTimesClockTimesAndQuotes) {
  const Workload jobs = Read(
      "submitted,ran,gpus,team\n"
      "2026-01-31T12:00:00.5+01:00,01:30:00,8,\"ads, \"\"new\"\"\"\n"
      "2026-01-31T11:00:01Z,1h30m,8,b\n",
      {.columns = TraceColumns{
           .submitted = "submitted", .duration = "ran", .gpus = "gpus", .queue = "team"}});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].queue, "ads, \"new\"");
  EXPECT_EQ(jobs[0].work_ms, 90 * kMinute);
  EXPECT_EQ(jobs[1].work_ms, 90 * kMinute);
  EXPECT_EQ(jobs[1].submitted, 500);
}

TEST(Gangs, AreSplitByNodes) {
  EXPECT_EQ(SplitIntoGang(1, 8), (Gang{1, 1}));
  EXPECT_EQ(SplitIntoGang(8, 8), (Gang{1, 8}));
  EXPECT_EQ(SplitIntoGang(12, 8), (Gang{2, 6}));
  EXPECT_EQ(SplitIntoGang(16, 8), (Gang{2, 8}));
  EXPECT_EQ(SplitIntoGang(13, 8), (Gang{13, 1}));
  EXPECT_EQ(SplitIntoGang(128, 8), (Gang{16, 8}));
}

TEST(MakeQueues, ProportionalQuotasAddUpToAllGpus) {
  Snapshot cluster;
  Resources capacity;
  capacity[kGpu] = 8;
  cluster.pools = {{.name = "own", .capacity = capacity, .min_nodes = 4, .max_nodes = 4}};
  const Workload jobs = Read(kHeader +
                             "2017-10-09 00:00:30,10.0,1,10.0,a\n"
                             "2017-10-09 00:00:30,10.0,1,10.0,b\n"
                             "2017-10-09 00:00:30,20.0,2,40.0,c\n");
  MakeQueues(jobs, Quotas::kProportional, cluster);
  ASSERT_EQ(cluster.queues.size(), 3u);
  EXPECT_EQ(cluster.queues[0].guaranteed.gpu(), 5);
  EXPECT_EQ(cluster.queues[1].guaranteed.gpu(), 6);
  EXPECT_EQ(cluster.queues[2].guaranteed.gpu(), 21);
}

}  // namespace
}  // namespace renzan::cluster::simulate
