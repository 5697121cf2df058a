// Databases of older and newer versions.

#include <gmock/gmock.h>

#include <fstream>

#include "renzan/base/error.h"
#include "renzan/cluster/local/store/old_store_testing.h"
#include "renzan/cluster/local/store/old_tables.h"
#include "renzan/cluster/local/store/store_tables.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

// What versions 1 and 2 recorded about a job whose node failed.
void PutJobOfFailedNode(Database& database, JobId id) {
  JobRecord job = SampleJob(id);
  job.state = RecordState::kPending;
  job.requeues = 4;
  store::JobsV2().Put(database, RowOfV10(job));
  AttemptRecord attempt = SampleAttempt(id);
  attempt.ended = attempt.started;
  attempt.ended_by = "node_lost";
  store::Attempts().Put(database, store::RowOf(attempt));
  store::Events().Put(
      database, {id, int64_t{0}, int64_t{5}, std::string("submitted"), std::string("node_lost")});
  store::Events().Put(database, {id, int64_t{1}, int64_t{6}, std::string("node_lost"),
                                 std::string("node n0 is lost")});
}

void PutQuotaOverride(Database& database) {
  store::QuotaOverridesV2().Put(database, {std::string("ann"), int64_t{1000}, int64_t{9}});
}

void ExpectNewWords(Store& store, JobId id) {
  EXPECT_EQ(store.FindJob(id)->requeues, 4);
  ASSERT_EQ(store.Attempts(id).size(), 1u);
  EXPECT_EQ(store.Attempts(id)[0].ended_by, "node_failed");
  EXPECT_EQ(store.Attempts(id)[0].placement, SampleAttempt(id).placement);
  const std::vector<EventRecord> events = store.Events(id);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "submitted");
  EXPECT_EQ(events[0].text, "node_lost");
  EXPECT_EQ(events[1].kind, "node_failed");
  EXPECT_EQ(events[1].text, "node n0 is lost");
  ASSERT_EQ(store.QuotaOverrides().size(), 1u);
  EXPECT_EQ(store.QuotaOverrides()[0].user, "ann");
  EXPECT_EQ(store.QuotaOverrides()[0].quota_override.until, 1000);
  EXPECT_EQ(store.QuotaOverrides()[0].quota_override.max_gpus, 9);
}

// As a program of version 1 would write it.
void MakeVersion1(const std::string& path) {
  Database database(path);
  database.Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(1)) database.Run(definition);
    PutJobOfFailedNode(database, 1);
    PutQuotaOverride(database);
    store::Facts().Put(database, {std::string("schema_version"), int64_t{1}});
    database.Run("PRAGMA user_version = 1");
  });
}

TEST(StoreUpgrade, UpgradesVersion1) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion1(path);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.UnfinishedJobs().size(), 1u);
    EXPECT_EQ(store.FindJob(1)->measured, Measured{});
    ExpectNewWords(store, 1);
    store.Transact([&] { store.Put(PoolRecord{.name = "spot"}); });
    EXPECT_EQ(store.Pools().size(), 1u);
  }
  EXPECT_TRUE(CopiesIn(directory).empty());
}

TEST(StoreUpgrade, RefusesACorruptOldDatabase) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion1(path);
  { Database(path).Run("UPDATE jobs SET name = 'other'"); }
  EXPECT_THROW(Store store(path), Error);
  EXPECT_EQ(CopiesIn(directory).size(), 1u);
}

// As a program of version 2 would write it: job 1 runs, 2 and 3 have ended; job 4, whose usage
// remains, was deleted.
void MakeVersion2(const std::string& path) {
  Database database(path);
  database.Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(2)) database.Run(definition);
    PutJobOfFailedNode(database, 1);
    for (JobId id = 2; id <= 3; ++id) {
      store::JobsV2().Put(database, RowOfV10(EndedJob(id, RecordState::kFailed)));
      store::Attempts().Put(database, store::RowOf(SampleAttempt(id)));
    }
    for (JobId id = 1; id <= 3; ++id) store::Usage().Put(database, {id, 1.5, 0.25});
    PutQuotaOverride(database);
    store::MeasuredTimesV2().Put(database, {int64_t{1}, int64_t{1200}, SqlValue()});
    store::UsageOfDeletedJobsV2().Put(database,
                                      {std::string("default"), std::string("ann"), 10.0, 2.0});
    store::Facts().Put(database, {std::string("last_forgotten_job"), int64_t{4}});
    store::Facts().Put(database, {std::string("schema_version"), int64_t{2}});
    database.Run("PRAGMA user_version = 2");
  });
}

TEST(StoreUpgrade, UpgradesVersion2) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion2(path);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.LastJob(), 4);
    EXPECT_EQ(store.UnfinishedJobs().size(), 1u);
    EXPECT_EQ(store.FindJob(1)->measured, Measured{.checkpoint_ms = 1200});
    EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 13);
    EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].cost), 2.5);
    EXPECT_EQ(store.CountByState(),
              (std::map<std::string, int64_t>{{"pending", 1}, {"failed", 2}}));
    ExpectNewWords(store, 1);
  }
}

// As a program of version 8 would write it: what a job used is not dated.
TEST(StoreUpgrade, UpgradesVersion8) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 2);
    store.Transact([&] {
      JobRecord job = SampleJob(1);
      job.state = RecordState::kPending;
      job.attempt.reset();
      job.attempts = 2;
      store.Put(job);
      for (int number : {0, 1}) {  // of one and of three seconds
        AttemptRecord attempt = SampleAttempt(1);
        attempt.number = number;
        attempt.started = 1000 + 1000 * number;
        attempt.ended = 2000 + 3000 * number;
        store.Put(attempt);
      }
    });
  }
  MakeOlder(path, 8);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    const std::vector<UsageSpan> spans = store.UsageSpansOf(1);
    ASSERT_EQ(spans.size(), 2u);
    EXPECT_EQ(spans[1].started, 2000);
    EXPECT_EQ(spans[1].ended, 5000);
    EXPECT_EQ(spans[1].user, "ann");
    EXPECT_DOUBLE_EQ(spans[0].usage.gpu_seconds, 1.5 / 4);
    EXPECT_DOUBLE_EQ(spans[1].usage.gpu_seconds, 1.5 * 3 / 4);
    EXPECT_DOUBLE_EQ(spans[1].usage.cost, 0.25 * 3 / 4);
    EXPECT_TRUE(store.UsageSpansOf(2).empty()) << "its attempt has not ended";
    EXPECT_EQ(store.UsageDatedSince(), std::nullopt) << "no job has been deleted";
    EXPECT_EQ(store.UsageSpansAfter({}, 1).size(), 1u);
    EXPECT_EQ(store.UsageSpansAfter(store.UsageSpansAfter({}, 1)[0].key(), 5).size(), 1u);
  }
}

// As a program of version 9 would write it, without what users have used lately.
TEST(StoreUpgrade, UpgradesVersion9) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  MakeOlder(path, 9);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    const std::vector<UsedLatelyRecord> before = store.UsedLately();
    ASSERT_EQ(before.size(), static_cast<size_t>(opened));
    store.Transact([&] {
      store.Put(UsedLatelyRecord{"vision", "ann", "gpu", opened + 0.1, 1000});
      store.Put(UsedLatelyRecord{"vision", "ann", "gpu", opened + 0.1, 2000});
    });
    const std::vector<UsedLatelyRecord> after = store.UsedLately();
    ASSERT_EQ(after.size(), 1u);
    EXPECT_EQ(after[0].queue, "vision");
    EXPECT_EQ(after[0].user, "ann");
    EXPECT_EQ(after[0].kind, "gpu");
    EXPECT_EQ(after[0].seconds, opened + 0.1);
    EXPECT_EQ(after[0].as_of, 2000);
  }
}

// As a program of version 3 would write it, without reservations.
TEST(StoreUpgrade, UpgradesVersion3) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    store.Transact([&] { store.Put(SampleJob(1)); });
  }
  MakeOlder(path, 3);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    ASSERT_TRUE(store.FindJob(1));
    JobRecord job = store.FindJob(1).value();
    EXPECT_EQ(job.name, SampleJob(1).name);
    EXPECT_EQ(job.reservation.size(), static_cast<size_t>(opened));
    job.reservation = {{"n0", 2, {}}};
    store.Transact([&] { store.Put(job); });
    EXPECT_EQ(store.FindJob(1)->reservation.at(0).workers, 2);
  }
}

// As a program of version 4 would write it, without run times: job 1 runs; the others have ended,
// those with higher numbers first, and before job 1 was submitted.
TEST(StoreUpgrade, UpgradesVersion4) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Database database(path);
    database.Transact([&] {
      for (const std::string& definition : store::DefinitionsOf(4)) database.Run(definition);
      for (JobId id = 1; id <= 13; ++id) {
        JobRecord job = SampleJob(id);
        job.run_ms = 1000 * id;
        if (id > 1) job.state = RecordState::kDone;
        if (id > 1) job.ended = 5000 - 100 * id;
        PutOldJob(database, 4, job, 1, 0);
        store::Usage().Put(database, {id, 0.0, 0.0});
      }
      store::Facts().Put(database, {std::string("last_job"), int64_t{13}});
      store::Facts().Put(database, {std::string("unfinished_jobs"), int64_t{1}});
      store::Facts().Put(database, {std::string("schema_version"), int64_t{4}});
      database.Run("PRAGMA user_version = 4");
    });
  }
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    const RunTimeQuantiles expected = store.UnfinishedJobs().at(0).run_time;
    EXPECT_GT(expected.front(), 1000);
    EXPECT_LT(expected.back(), 16'000);
    const std::vector<EndedRunTime> ended = store.EndedRunTimesAfter(0);
    ASSERT_EQ(ended.size(), 12u);
    EXPECT_EQ(ended.front().ran_ms, 13'000);
    EXPECT_EQ(ended.back().ran_ms, 2000);
    EXPECT_EQ(ended.back().traits.name, SampleJob(2).name);
  }
}

// As a program of version 5 would write it, without early failures and reasons of nodes.
TEST(StoreUpgrade, UpgradesVersion5) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  const EarlyFailure failure{.job = 1, .node = "n0", .user = "ann", .time = 7, .counts = false};
  const NodeRecord node{.name = "n0",
                        .pool = "own",
                        .state = NodeState::kCordoned,
                        .until = 9,
                        .closed_by = ClosedBy::kSuspicion,
                        .reason = "jobs failed"};
  {
    Store store(path);
    store.Transact([&] { store.Put(SampleJob(1)); });
  }
  MakeOlder(path, 5);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.EarlyFailures().size(), static_cast<size_t>(opened));
    EXPECT_EQ(store.Nodes().size(), static_cast<size_t>(opened));
    store.Transact([&] {
      store.Put(failure);
      store.Put(node);
    });
    EXPECT_EQ(store.EarlyFailures().at(0), failure);
    EXPECT_EQ(store.Nodes().at(0).closed_by, ClosedBy::kSuspicion);
    EXPECT_EQ(store.Nodes().at(0).reason, "jobs failed");
  }
  Store store(path);
  store.Transact([&] {
    store.Put({.name = "n0", .pool = "own"});
    store.DeleteEarlyFailuresOn("n0");
  });
  EXPECT_EQ(store.Nodes().at(0).reason, "");
  EXPECT_TRUE(store.EarlyFailures().empty());
}

// As a program of version 6 would write it, which knew yields by the reason's text only.
TEST(StoreUpgrade, UpgradesVersion6) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    store.Transact([&] {
      for (JobId id = 1; id <= 2; ++id) {
        JobRecord job = SampleJob(id);
        job.attempt->stopping_for = 7;
        job.attempt->stop_reason = id == 1 ? "reservation for job 7" : "preempted for job 7";
        store.Put(job);
      }
    });
  }
  MakeOlder(path, 6);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    const std::vector<JobRecord> jobs = store.UnfinishedJobs();
    ASSERT_EQ(jobs.size(), 2u);
    EXPECT_EQ(jobs[0].reservation_yields, 1);
    EXPECT_EQ(jobs[1].reservation_yields, 0);
    EXPECT_EQ(jobs[0].spec, SampleJob(1).spec);
  }
}

TEST(StoreUpgrade, UpgradesVersion7) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    store.Transact([&] { store.Put(SampleJob(1)); });
  }
  MakeOlder(path, 7);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.UnfinishedJobs().at(0).held_by, opened == 0 ? "" : "ann");
    JobRecord job = SampleJob(1);
    job.held_by = "ann";
    store.Transact([&] { store.Put(job); });
  }
  Store store(path);
  store.Transact([&] { store.Put(SampleJob(1)); });
  EXPECT_EQ(store.UnfinishedJobs().at(0).held_by, "");
}

// As a program of version 10 would write it, with what it kept in tables of their own.
TEST(StoreUpgrade, UpgradesVersion10) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  JobRecord waits = SampleJob(1);
  waits.state = RecordState::kPending;
  waits.attempt.reset();
  waits.held_by = "ann";
  waits.reservation = {{"n0", 2, {}}};
  waits.reservation_yields = 3;
  waits.measured = {.checkpoint_ms = 1, .restart_ms = 2, .killed_after_ms = 3};
  JobRecord collects = EndedJob(2, RecordState::kCollecting);
  collects.ended.reset();
  collects.attempts = 0;
  collects.collection = {.becomes = RecordState::kFailed, .ended = 77, .text = "failed"};
  {
    Store store(path);
    store.Transact([&] {
      for (const JobRecord& job : {waits, collects, SampleJob(3)}) store.Put(job);
      AttemptRecord attempt = SampleAttempt(1);
      attempt.ended = attempt.started + 1000;
      store.Put(attempt);
      store.Put(SampleJob(3), EventRecord{.time = 5, .kind = "started", .text = "attempt 0"});
    });
    EndJob(store, 3, RecordState::kDone);
    store.Transact([&] { store.Put(SampleJob(4)); });
  }
  MakeOlder(path, 10);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    const std::vector<JobRecord> jobs = store.UnfinishedJobs();
    ASSERT_EQ(jobs.size(), 3u);
    EXPECT_EQ(jobs[0].held_by, "ann");
    EXPECT_EQ(jobs[0].reservation, waits.reservation);
    EXPECT_EQ(jobs[0].reservation_yields, 3);
    EXPECT_EQ(jobs[0].measured, waits.measured);
    EXPECT_EQ(jobs[0].run_time, waits.run_time);
    EXPECT_EQ(jobs[0].spec, waits.spec);
    // These follow from its attempts.
    EXPECT_EQ(jobs[0].attained_worker_ms, 3000);
    EXPECT_EQ(jobs[0].waiting_since, SampleAttempt(1).started + 1000);
    ASSERT_TRUE(jobs[1].collection);
    EXPECT_EQ(jobs[1].collection->ended, 77);
    ASSERT_TRUE(jobs[2].attempt);
    EXPECT_EQ(static_cast<const AttemptFacts&>(*jobs[2].attempt), SampleAttempt(4));
    EXPECT_EQ(store.Attempts(4).size(), 1u);
    EXPECT_EQ(store.Attempts(3).at(0).ended, SampleAttempt(3).started);
    EXPECT_EQ(store.Events(3).size(), 1u);
    EXPECT_EQ(store.FindJob(3)->ended, 300);
    EXPECT_EQ(store.CountByState().at("done"), 1);
  }
}

// What the last program of version 10 had written when it was killed: job 1 has ended, 2 is held
// after two attempts, 3 runs.
TEST(StoreUpgrade, UpgradesADatabaseThatVersion10Wrote) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Database database(path);
    database.Run("PRAGMA foreign_keys = OFF");
    const std::string script = ReadFile(RENZAN_VERSION_10), end = ";\n";
    database.Transact([&] {
      for (size_t at = 0; at < script.size();) {
        const size_t next = script.find(end, at);
        database.Run(script.substr(at, next - at));
        at = next + end.size();
      }
      database.Run("PRAGMA user_version = 10");
    });
  }
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.CountByState(),
              (std::map<std::string, int64_t>{{"done", 1}, {"pending", 1}, {"running", 1}}));
    const JobRecord ended = store.FindJob(1).value();
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_EQ(ended.ended, 1796024269218);
    EXPECT_THAT(ended.spec, HasSubstr("command: [\"true\"]"));
    EXPECT_EQ(store.Events(1).size(), 3u);
    const std::vector<JobRecord> jobs = store.UnfinishedJobs();
    ASSERT_EQ(jobs.size(), 2u);
    EXPECT_EQ(jobs[0].held_by, "root");
    EXPECT_EQ(jobs[0].attempts, 2);
    EXPECT_EQ(jobs[0].preemptions, 2);
    EXPECT_EQ(jobs[0].waiting_since, 1796024273848);
    EXPECT_EQ(jobs[0].attained_worker_ms, 4554);
    EXPECT_FALSE(jobs[0].attempt);
    EXPECT_EQ(store.Attempts(2).size(), 2u);
    ASSERT_TRUE(jobs[1].attempt);
    EXPECT_EQ(jobs[1].attempt->placement.at(0).devices, (std::vector<std::vector<int>>{{1}}));
    EXPECT_EQ(store.Attempts(3).size(), 1u);
    EXPECT_DOUBLE_EQ(store.Usage(2).gpu_seconds, 4.554);
  }
}

// Its history would be shorter from then on.
TEST(StoreUpgrade, RefusesAnOldDatabaseThatHasLostRows) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 2);
  }
  MakeOlder(path, 10);
  { Database(path).Run("DELETE FROM events WHERE job = 2 AND number = 1"); }
  EXPECT_THROW(Store store(path), Error);
}

TEST(StoreUpgrade, RefusesAnOldDatabaseThatHasLostWhatItKeptOfAJob) {
  for (const auto& [table, what] :
       {std::pair("usage", "usage of job 2 is missing"),
        std::pair("measured_times", "measured times of job 2 are missing"),
        std::pair("collections", "how job 2 ended is missing")}) {
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      FillStore(store, 1);
      JobRecord collects = EndedJob(2, RecordState::kCollecting);
      collects.ended.reset();
      collects.measured.checkpoint_ms = 5;
      collects.collection = {.becomes = RecordState::kFailed, .ended = 77, .text = "failed"};
      collects.attempts = 0;
      store.Transact([&] { store.Put(collects); });
    }
    MakeOlder(path, 10);
    { Database(path).Run(fmt::format("DELETE FROM {} WHERE job = 2", table)); }
    try {
      Store store(path);
      ADD_FAILURE() << "opened without " << table;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  }
}

TEST(StoreUpgrade, RefusesANewerVersion) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  // The version is in bytes 60 to 63 of the file, big-endian.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(62);
  file.put(9);
  file.close();
  try {
    Store store(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), HasSubstr("newer version"));
  }
}

}  // namespace
}  // namespace renzan::cluster::local
