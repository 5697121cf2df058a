#include "renzan/cluster/simulate/sacct.h"

#include <gmock/gmock.h>

#include "renzan/base/error.h"
#include "renzan/cluster/simulate/trace_testing.h"

namespace renzan::cluster::simulate {
namespace {

const std::string kFields = "JobID|JobName|User|Account|Submit|ElapsedRaw|AllocTRES\n";

Workload ReadJobsOf(const std::string& text) {
  TraceOptions options;
  options.share_of_one_gpu[kGpu] = 1;
  return ReadSacct(LinesOf(text), "jobs.txt", options);
}

TEST(Sacct, JobsThatUsedGpus) {
  const Workload jobs = ReadJobsOf(
      kFields +
      "12|train, \"big\"|ann|ads|2026-01-31T12:00:10|3600|"
      "billing=32,cpu=32,gres/gpu:a100=16,gres/gpu=16,mem=256G,node=2\n"
      "12.batch|batch|||2026-01-31T12:00:10|3600|cpu=32,gres/gpu=8,mem=128G,node=1\n"
      "13_1|array|bob|ads|2026-01-31T12:00:00|90|cpu=4,gres/gpu:a100=1,gres/gpu:v100=1,node=1\n"
      "14|prepare|bob|ads|2026-01-31T12:00:01|90|cpu=4,mem=8G,node=1\n"
      "15|never|bob|ads|2026-01-31T12:00:02|0|cpu=4,gres/gpu=1,node=1\n"
      "16|nothing|bob|ads|2026-01-31T12:00:02|0|\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "array");
  EXPECT_EQ(jobs[0].gpus(), 2);
  EXPECT_EQ(jobs[0].submitted, 0);
  EXPECT_EQ(jobs[1].name, "train, \"big\"");
  EXPECT_EQ(jobs[1].user, "ann");
  EXPECT_EQ(jobs[1].queue, "ads");
  EXPECT_EQ(jobs[1].max_workers, 2);
  EXPECT_EQ(jobs[1].work_ms, kHour);
  EXPECT_EQ(jobs[1].submitted, 10'000);
}

TEST(Sacct, OtherFields) {
  const Workload jobs = ReadJobsOf(
      "Submit|Elapsed|ReqTRES|Partition\n2026-01-31T12:00:10|1-00:00:01|gres/gpu=1|a100\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].work_ms, 86401'000);
  EXPECT_EQ(jobs[0].queue, "a100");
  EXPECT_EQ(jobs[0].user, "a100");
}

TEST(Sacct, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string text, says;
  } cases[] = {
      {"", "jobs.txt:1: it is empty"},
      {"JobID|Submit\n", "jobs.txt:1: the fields must include Submit, ElapsedRaw and AllocTRES"},
      {kFields, "jobs.txt:1: no job in it used GPUs"},
      {kFields + "1|a|b\n", "jobs.txt:2: must have 7 fields, as the first line, but has 3"},
      {kFields + "1|a|b|c|2026-01-31T12:00:10|5|gres/gpu=x\n", "AllocTRES 'gres/gpu=x'"},
      {kFields + "1|a|b|c|2026-01-31T12:00:10|five|gres/gpu=1\n", "ElapsedRaw 'five'"},
      {kFields + "1|a|b|c|Unknown|5|gres/gpu=1\n", "jobs.txt:2: Submit 'Unknown'"},
  };
  for (const auto& [text, says] : cases) {
    try {
      ReadJobsOf(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_THAT(error.what(), testing::HasSubstr(says));
    }
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
