#include "renzan/cluster/local/supervisor/attempt_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

using testing::HasSubstr;

AttemptPlan WholePlan() {
  AttemptPlan plan;
  plan.job = int64_t{1} << 40;
  plan.attempt = 2;
  plan.command = {"renzan", "train", "a \"quoted\" path", ""};
  plan.environment = {{"NAME", "värde"}, {"EMPTY", ""}};
  plan.working_directory = "/home/ann";
  plan.run_dir = "/jobs/1/run";
  plan.checkpoint_dir = "/jobs/1/checkpoints";
  plan.uid = 1000;
  plan.gid = 4294967294;
  plan.grace_seconds = 0.1;
  plan.timeout_ms = 5;
  plan.log_bytes = 123;
  plan.log_files = 7;
  plan.enforce_memory = true;
  plan.max_disk_mib = 5;
  plan.cgroups = {.name = "renzan-job-1",
                  .hold = {"/groups/a", true},
                  .cpu = {"/groups/b", false},
                  .memory = {},
                  .devices = {"/groups/c", false}};
  plan.denied_devices = {195, dev_t{1} << 40};
  plan.workers = {
      {.node = "n0", .local_rank = 1, .devices = {2, 3}, .cpu_millis = 500, .memory_mib = 64},
      {.node = "n1"}};
  return plan;
}

TEST(AttemptFiles, PlansRoundTrip) {
  TemporaryDirectory dir;
  const AttemptPaths paths(dir.path());
  const AttemptPlan plan = WholePlan();
  WriteFileAtomically(paths.plan, PlanToJson(plan));
  const AttemptPlan read = ReadPlan(paths);
  EXPECT_EQ(read.job, plan.job);
  EXPECT_EQ(read.attempt, plan.attempt);
  EXPECT_EQ(read.command, plan.command);
  EXPECT_EQ(read.environment, plan.environment);
  EXPECT_EQ(read.working_directory, plan.working_directory);
  EXPECT_EQ(read.run_dir, plan.run_dir);
  EXPECT_EQ(read.checkpoint_dir, plan.checkpoint_dir);
  EXPECT_EQ(read.uid, plan.uid);
  EXPECT_EQ(read.gid, plan.gid);
  EXPECT_EQ(read.grace_seconds, plan.grace_seconds);
  EXPECT_EQ(read.timeout_ms, plan.timeout_ms);
  EXPECT_EQ(read.log_bytes, plan.log_bytes);
  EXPECT_EQ(read.log_files, plan.log_files);
  EXPECT_TRUE(read.enforce_memory);
  EXPECT_EQ(read.max_disk_mib, 5);
  EXPECT_EQ(read.cgroups.name, "renzan-job-1");
  EXPECT_EQ(read.cgroups.hold.directory, "/groups/a");
  EXPECT_TRUE(read.cgroups.hold.v2);
  EXPECT_EQ(read.cgroups.cpu.directory, "/groups/b");
  EXPECT_FALSE(read.cgroups.cpu.v2);
  EXPECT_EQ(read.cgroups.memory.directory, "");
  EXPECT_EQ(read.cgroups.devices.directory, "/groups/c");
  EXPECT_EQ(read.denied_devices, plan.denied_devices);
  ASSERT_EQ(read.workers.size(), 2u);
  EXPECT_EQ(read.workers[0].node, "n0");
  EXPECT_EQ(read.workers[0].local_rank, 1);
  EXPECT_EQ(read.workers[0].devices, plan.workers[0].devices);
  EXPECT_EQ(read.workers[0].cpu_millis, 500);
  EXPECT_EQ(read.workers[0].memory_mib, 64);
  EXPECT_EQ(read.workers[1].node, "n1");
}

TEST(AttemptFiles, APlanOfAnEarlierDaemonDoesNotEnforceMemory) {
  TemporaryDirectory dir;
  const AttemptPaths paths(dir.path());
  std::string json = PlanToJson(WholePlan());
  const std::string line = "  \"enforce_memory\": true,\n";
  ASSERT_THAT(json, HasSubstr(line));
  json.erase(json.find(line), line.size());
  WriteFileAtomically(paths.plan, json);
  EXPECT_FALSE(ReadPlan(paths).enforce_memory);
  EXPECT_EQ(ReadPlan(paths).workers.size(), 2u);
}

TEST(AttemptFiles, EndsRoundTrip) {
  TemporaryDirectory dir;
  const AttemptPaths paths(dir.path());
  EXPECT_FALSE(ReadEnd(paths));
  for (const EndedBy by :
       {EndedBy::kItself, EndedBy::kRequest, EndedBy::kTimeout, EndedBy::kNodeFailed,
        EndedBy::kWorkerFailed, EndedBy::kCannotStart, EndedBy::kNeverStarted}) {
    AttemptEnd end{.by = by,
                   .exit_code = 139,
                   .message = "bytes: \xff",
                   .started_ms = 1,
                   .ended_ms = 2,
                   .ran_ms = 3};
    end.workers = {{.exit_code = 139, .signal = 11}, {}};
    WriteFileAtomically(paths.end, EndToJson(end));
    const std::optional<AttemptEnd> read = ReadEnd(paths);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->by, by);
    EXPECT_EQ(read->exit_code, 139);
    EXPECT_THAT(read->message, HasSubstr("bytes: "));
    EXPECT_EQ(read->started_ms, 1);
    EXPECT_EQ(read->ran_ms, 3);
    EXPECT_EQ(read->ended_ms, 2);
    ASSERT_EQ(read->workers.size(), 2u);
    EXPECT_EQ(read->workers[0].exit_code, 139);
    EXPECT_EQ(read->workers[0].signal, 11);
  }
}

TEST(AttemptFiles, ReadsEndsOfEarlierSupervisors) {
  TemporaryDirectory dir;
  const AttemptPaths paths(dir.path());
  const std::string json = EndToJson({.by = EndedBy::kNodeFailed});
  const std::string word = "node_failed";
  ASSERT_THAT(json, HasSubstr(word));
  for (const char* earlier : {"node_lost", "node lost"}) {
    WriteFileAtomically(paths.end,
                        std::string(json).replace(json.find(word), word.size(), earlier));
    EXPECT_EQ(ReadEnd(paths)->by, EndedBy::kNodeFailed);
  }
}

// The message of the Error with this code that `function` throws.
template <typename Function>
std::string ErrorOf(ErrorCode code, const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

TEST(AttemptFiles, NamesCorruptFiles) {
  TemporaryDirectory dir;
  const AttemptPaths paths(dir.path());
  EXPECT_THAT(ErrorOf(ErrorCode::kNoInput, [&] { ReadPlan(paths); }), HasSubstr("plan.json"));
  for (const char* text : {"", "{", "[]", "{\"by\": 3}", "{\"by\": \"magic\"}"}) {
    std::ofstream(paths.end) << text;
    EXPECT_THROW(ReadEnd(paths), Error) << text;
  }
  std::ofstream(paths.end) << "{\"by\": 3}";
  EXPECT_THAT(ErrorOf(ErrorCode::kData, [&] { ReadEnd(paths); }), HasSubstr("end.json is corrupt"));
}

TEST(AttemptFiles, RefusesACommandThatIsNotUtf8) {
  AttemptPlan plan = WholePlan();
  plan.command.push_back("\xff");
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig, [&] { PlanToJson(plan); }), HasSubstr("not UTF-8"));
}

TEST(AttemptFiles, NormalizesDirectoryNames) {
  const AttemptPaths plain("/jobs/1/attempt-0");
  for (const char* other : {"/jobs/1/attempt-0/", "/jobs/1/../1/./attempt-0//"})
    EXPECT_EQ(AttemptPaths(other).directory, plain.directory);
  EXPECT_EQ(plain.Log(2), "/jobs/1/attempt-0/worker-2.log");
}

}  // namespace
}  // namespace renzan::cluster::local
