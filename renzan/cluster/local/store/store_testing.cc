#include "renzan/cluster/local/store/store_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace renzan::cluster::local {

JobRecord SampleJob(JobId id) {
  JobRecord job;
  job.id = id;
  job.name = fmt::format("job-{}", id);
  job.queue = "default";
  job.spec = "command: [true]\nname: \"\\u00e9\"\n";
  job.source = "job.yaml";
  job.submit_dir = "/home/ann";
  job.user = "ann";
  job.uid = 1000;
  job.gid = 100;
  job.priority = -3;
  job.min_workers = 2;
  job.max_workers = 5;
  job.cpu_millis = 1500;
  job.memory_mib = 64;
  job.gpus = 4;
  job.state = RecordState::kRunning;
  job.submitted = 1'700'000'000'000 + id;
  job.attempts = 1;
  job.run_ms = 42;
  job.first_started = 1'700'000'000'500;
  job.manifest = "{}";
  job.run_time = {1, 2, 3, 4, 5 + id};
  job.attempt = SampleAttempt(id);
  job.measured = {.checkpoint_ms = 1200};
  return job;
}

AttemptRecord SampleAttempt(JobId job) {
  AttemptRecord attempt;
  attempt.job = job;
  attempt.placement = {{.node = "n0", .workers = 2, .devices = {{0, 1}, {2, 3}}},
                       {.node = "n1", .workers = 1, .devices = {{}}}};
  attempt.target = {{.node = "n1", .workers = 1}};
  attempt.started = 1'700'000'000'500;
  attempt.backfilled = true;
  attempt.stop_reason = "preempted for job 7";
  return attempt;
}

void FillStore(Store& store, JobId jobs) {
  for (JobId id = 1; id <= jobs; ++id)
    store.Transact([&] {
      store.Put(SampleJob(id), EventRecord{.time = 5, .kind = "submitted", .text = "by ann"});
      store.Put(SampleJob(id), EventRecord{.time = 6, .kind = "started", .text = "attempt 0"});
      store.PutUsage(id, {.gpu_seconds = 1.5, .cost = 0.25});
    });
  store.Transact([&] {
    store.Put({.name = "n0", .pool = "own", .state = NodeState::kDraining, .until = 77});
    store.Put(QuotaOverrideRecord{"ann", {.max_gpus = 9, .until = 1000}});
    store.Put(LoanRecord{"vision", "speech", 12.5});
    store.Put(UsedLatelyRecord{"vision", "ann", "gpu", 7.5, 66});
    store.Put(PoolRecord{.name = "spot", .node_ms = 7, .interruptions = 2});
    store.PutAccountedUntil(99);
  });
}

void ExpectFilledStore(Store& store, JobId jobs) {
  EXPECT_EQ(store.LastJob(), jobs);
  EXPECT_EQ(store.UnfinishedJobs().size(), static_cast<size_t>(jobs));
  for (JobId id = 1; id <= jobs; ++id) {
    const auto job = store.FindJob(id);
    ASSERT_TRUE(job);
    const JobRecord sample = SampleJob(id);
    EXPECT_EQ(job->name, sample.name);
    EXPECT_EQ(job->spec, sample.spec);
    EXPECT_EQ(job->priority, sample.priority);
    EXPECT_EQ(job->min_workers, sample.min_workers);
    EXPECT_EQ(job->max_workers, sample.max_workers);
    EXPECT_EQ(job->cpu_millis, sample.cpu_millis);
    EXPECT_EQ(job->memory_mib, sample.memory_mib);
    EXPECT_EQ(job->gpus, sample.gpus);
    EXPECT_EQ(job->state, sample.state);
    EXPECT_EQ(job->first_started, sample.first_started);
    EXPECT_EQ(job->ended, std::nullopt);
    EXPECT_EQ(job->exit_code, std::nullopt);
    EXPECT_EQ(store.UnfinishedJobs().at(static_cast<size_t>(id) - 1).run_time, sample.run_time);
    const auto attempts = store.Attempts(id);
    ASSERT_EQ(attempts.size(), 1u);
    EXPECT_EQ(attempts[0].placement, SampleAttempt(id).placement);
    EXPECT_EQ(attempts[0].target, SampleAttempt(id).target);
    EXPECT_EQ(attempts[0].stop_reason, SampleAttempt(id).stop_reason);
    EXPECT_TRUE(attempts[0].backfilled);
    const auto events = store.Events(id);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[1].kind, "started");
    EXPECT_EQ(store.Usage(id).gpu_seconds, 1.5);
    EXPECT_EQ(job->measured, Measured{.checkpoint_ms = 1200});
  }
  ASSERT_EQ(store.Pools().size(), 1u);
  EXPECT_EQ(store.Pools()[0].interruptions, 2);
  ASSERT_EQ(store.Nodes().size(), 1u);
  EXPECT_EQ(store.Nodes()[0].state, NodeState::kDraining);
  EXPECT_EQ(store.Nodes()[0].until, 77);
  ASSERT_EQ(store.QuotaOverrides().size(), 1u);
  EXPECT_EQ(store.QuotaOverrides()[0].quota_override.max_gpus, 9);
  ASSERT_EQ(store.Loans().size(), 1u);
  EXPECT_EQ(store.Loans()[0].gpu_seconds, 12.5);
  ASSERT_EQ(store.UsedLately().size(), 1u);
  EXPECT_EQ(store.UsedLately()[0].seconds, 7.5);
  EXPECT_EQ(store.AccountedUntil(), 99);
}

std::vector<std::string> CopiesIn(const TemporaryDirectory& directory) {
  std::vector<std::string> copies;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    if (entry.path().filename().string().find(".corrupt-") != std::string::npos &&
        !entry.path().string().ends_with("-wal"))
      copies.push_back(entry.path());
  return copies;
}

JobRecord EndedJob(JobId id, RecordState state) {
  JobRecord job = SampleJob(id);
  job.state = state;
  job.ended = 100 * id;
  job.attempt.reset();
  return job;
}

void EndJob(Store& store, JobId id, RecordState state) {
  store.Transact([&] {
    AttemptRecord attempt = SampleAttempt(id);
    attempt.ended = attempt.started;
    store.Put(attempt);
    store.Put(EndedJob(id, state));
  });
}

}  // namespace renzan::cluster::local
