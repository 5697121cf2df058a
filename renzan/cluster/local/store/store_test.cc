#include "renzan/cluster/local/store/store.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

JobRecord SampleJob(JobId id) {
  return {.id = id,
          .name = fmt::format("job-{}", id),
          .queue = "default",
          .spec = "command: [true]\nname: \"\\u00e9\"\n",
          .source = "job.yaml",
          .submit_dir = "/home/ann",
          .user = "ann",
          .uid = 1000,
          .gid = 100,
          .priority = -3,
          .min_workers = 2,
          .max_workers = 5,
          .cpu_millis = 1500,
          .memory_mib = 64,
          .gpus = 4,
          .state = RecordState::kRunning,
          .submitted = 1'700'000'000'000 + id,
          .attempts = 1,
          .run_ms = 42,
          .started = 1'700'000'000'500,
          .manifest = "{}"};
}

AttemptRecord SampleAttempt(JobId job) {
  return {.job = job,
          .number = 0,
          .placement = {{.node = "n0", .workers = 2, .devices = {{0, 1}, {2, 3}}},
                        {.node = "n1", .workers = 1, .devices = {{}}}},
          .target = {{.node = "n1", .workers = 1}},
          .started = 1'700'000'000'500,
          .backfilled = true,
          .stop_reason = "preempted for job 7"};
}

void Fill(Store& store, JobId jobs) {
  for (JobId id = 1; id <= jobs; ++id)
    store.Transact([&] {
      store.Put(SampleJob(id));
      store.Put(SampleAttempt(id));
      store.PutUsage(id, {.gpu_seconds = 1.5, .cost = 0.25});
      store.PutMeasured(id, {.checkpoint_ms = 1200});
      store.AddEvent({.job = id, .time = 5, .kind = "submitted", .text = "by ann"});
      store.AddEvent({.job = id, .time = 6, .kind = "started", .text = "attempt 0"});
    });
  store.Transact([&] {
    store.Put({.name = "n0", .pool = "own", .state = NodeState::kDraining, .until = 77});
    store.Put(QuotaOverrideRecord{"ann", {.max_gpus = 9, .until = 1000}});
    store.Put(LoanRecord{"vision", "speech", 12.5});
    store.Put(PoolRecord{.name = "spot", .node_ms = 7, .interruptions = 2});
    store.PutAccountedUntil(99);
  });
}

void ExpectFilled(Store& store, JobId jobs) {
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
    EXPECT_EQ(job->started, sample.started);
    EXPECT_EQ(job->ended, std::nullopt);
    EXPECT_EQ(job->exit_code, std::nullopt);
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
    EXPECT_EQ(store.MeasuredOf(id), Measured{.checkpoint_ms = 1200});
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
  EXPECT_EQ(store.AccountedUntil(), 99);
}

// Of the database itself, without those of its log.
std::vector<std::string> CopiesIn(const TemporaryDirectory& directory) {
  std::vector<std::string> copies;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    if (entry.path().filename().string().find(".corrupt-") != std::string::npos &&
        !entry.path().string().ends_with("-wal"))
      copies.push_back(entry.path());
  return copies;
}

TEST(Store, HoldsAllThatWasWrittenWhenItIsOpenedAgain) {
  TemporaryDirectory directory;
  {
    Store store(directory / "state.db");
    EXPECT_EQ(store.LastJob(), 0);
    EXPECT_EQ(store.AccountedUntil(), std::nullopt);
    Fill(store, 3);
    ExpectFilled(store, 3);
  }
  Store store(directory / "state.db");
  ExpectFilled(store, 3);
  struct stat about;
  ASSERT_EQ(::stat((directory / "state.db").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(Store, ATransactionThatThrowsChangesNothing) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  Fill(store, 1);
  EXPECT_THROW(store.Transact([&] {
    JobRecord job = SampleJob(1);
    job.state = RecordState::kDone;
    job.ended = 7;
    store.Put(job);
    store.Put(SampleJob(2));
    Fail(ErrorCode::kIo, "in the middle");
  }),
               Error);
  ExpectFilled(store, 1);
}

TEST(Store, AnAttemptBelongsToAJob) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  EXPECT_THROW(store.Transact([&] { store.Put(SampleAttempt(5)); }), Error);
}

TEST(Store, ListsJobsThatEndedLately) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  store.Transact([&] {
    for (JobId id = 1; id <= 3; ++id) {
      JobRecord job = SampleJob(id);
      if (id < 3) {
        job.state = RecordState::kFailed;
        job.ended = id * 100;
        job.exit_code = 3;
      }
      store.Put(job);
    }
  });
  ASSERT_EQ(store.EndedJobs({.since = 200}, 9).size(), 1u);
  EXPECT_EQ(store.EndedJobs({.since = 200}, 9)[0].id, 2);
  EXPECT_EQ(store.EndedJobs({.since = 200}, 9)[0].exit_code, 3);
  EXPECT_EQ(store.EndedJobs({}, 9).size(), 2u);
  EXPECT_EQ(store.CountEnded({}), 2);
  EXPECT_EQ(store.CountEnded({.user = "bob"}), 0);
  EXPECT_EQ(store.EndedBefore(200, 9), std::vector<JobId>{1});
  ASSERT_EQ(store.UnfinishedJobs().size(), 1u);
  EXPECT_EQ(store.UnfinishedJobs()[0].id, 3);
}

// As version 1 of the tables had it: written by that program, but for the rows' content.
void MakeVersion1(const std::string& path) {
  Database database(path);
  database.Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(1)) database.Run(definition);
    store::Jobs().Put(database, store::RowOf(SampleJob(1)));
    store::Attempts().Put(database, store::RowOf(SampleAttempt(1)));
    store::Facts().Put(database, {std::string("schema_version"), int64_t{1}});
    database.Run("PRAGMA user_version = 1");
  });
}

TEST(Store, BringsAnOlderOneUpToDate) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion1(path);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.UnfinishedJobs().size(), 1u);
    EXPECT_EQ(store.MeasuredOf(1), Measured{});
    store.Transact([&] { store.Put(PoolRecord{.name = "spot"}); });
    EXPECT_EQ(store.Pools().size(), 1u);
  }
  EXPECT_TRUE(CopiesIn(directory).empty());
}

TEST(Store, AnOlderOneThatIsCorruptIsRefused) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion1(path);
  { Database(path).Run("UPDATE jobs SET name = 'other'"); }
  EXPECT_THROW(Store store(path), Error);
  EXPECT_EQ(CopiesIn(directory).size(), 1u);
}

// As version 2 had it: jobs 1 (runs), 2 and 3 (ended); what job 4 used, which was forgotten.
void MakeVersion2(const std::string& path) {
  Database database(path);
  database.Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(2)) database.Run(definition);
    for (JobId id = 1; id <= 3; ++id) {
      JobRecord job = SampleJob(id);
      if (id > 1) job.state = RecordState::kFailed;
      if (id > 1) job.ended = 100 * id;
      store::Jobs().Put(database, store::RowOf(job));
      store::Attempts().Put(database, store::RowOf(SampleAttempt(id)));
      store::Usage().Put(database, {id, 1.5, 0.25});
    }
    store::MeasuredTimes2().Put(database, {int64_t{1}, int64_t{1200}, SqlValue()});
    store::ForgottenUsage().Put(database, {std::string("default"), std::string("ann"), 10.0, 2.0});
    store::Facts().Put(database, {std::string("last_forgotten_job"), int64_t{4}});
    store::Facts().Put(database, {std::string("schema_version"), int64_t{2}});
    database.Run("PRAGMA user_version = 2");
  });
}

TEST(Store, BringsSumsOfVersion2UpToDate) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  MakeVersion2(path);
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.LastJob(), 4);
    EXPECT_EQ(store.UnfinishedJobs().size(), 1u);
    EXPECT_EQ(store.MeasuredOf(1), Measured{.checkpoint_ms = 1200});
    EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 13);
    EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].cost), 2.5);
    EXPECT_EQ(store.CountByState(),
              (std::map<std::string, int64_t>{{"running", 1}, {"failed", 2}}));
  }
}

void EndJob(Store& store, JobId id, RecordState state) {
  store.Transact([&] {
    JobRecord job = SampleJob(id);
    job.state = state;
    job.ended = 100 * id;
    store.Put(job);
  });
}

TEST(Store, CountsWhatHasEndedAsItEnds) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  Fill(store, 4);
  EndJob(store, 1, RecordState::kDone);
  EndJob(store, 2, RecordState::kDone);
  EndJob(store, 3, RecordState::kFailed);
  using Counts = std::map<std::string, int64_t>;
  EXPECT_EQ(store.CountByState(), (Counts{{"running", 1}, {"done", 2}, {"failed", 1}}));
  EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 4.5);
  store.Transact([&] { store.Forget({1, 3}); });
  EXPECT_EQ(store.CountByState(), (Counts{{"running", 1}, {"done", 1}}));
  EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 4.5);
  EXPECT_EQ(store.LastJob(), 4);
}

TEST(Store, AJobCollectsItsArtifactsUntilItEnds) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    Fill(store, 1);
    store.Transact([&] {
      JobRecord job = SampleJob(1);
      job.state = RecordState::kCollecting;
      store.Put(job);
      store.Put(CollectionRecord{1, RecordState::kFailed, 77, "failed"});
    });
  }
  Store store(path);
  ASSERT_EQ(store.Collections().size(), 1u);
  EXPECT_EQ(store.Collections()[0].becomes, RecordState::kFailed);
  EXPECT_EQ(store.Collections()[0].ended, 77);
  EndJob(store, 1, RecordState::kFailed);
  EXPECT_TRUE(store.Collections().empty());
}

TEST(Store, WhatHasEndedIsCheckedWhenItIsRead) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    Fill(store, 2);
    EndJob(store, 1, RecordState::kDone);
  }
  { Database(path).Run("UPDATE jobs SET name = 'other' WHERE id = 1"); }
  Store store(path);
  EXPECT_TRUE(store.FindJob(2));
  EXPECT_TRUE(CopiesIn(directory).empty());
  EXPECT_THROW(store.FindJob(1), Error);
  EXPECT_TRUE(store.damage());
  EXPECT_EQ(CopiesIn(directory).size(), 1u);
}

// As a corrupt page loses rows: nobody asks for their checksums.
TEST(Store, WhatIsLostOfAJobThatHasEndedIsMissedWhenItIsRead) {
  const std::pair<const char*, std::function<void(Store&)>> losses[] = {
      {"jobs WHERE id", [](Store& store) { store.FindJob(1); }},
      {"attempts WHERE job", [](Store& store) { store.Attempts(1); }},
      {"events WHERE number = 1 AND job", [](Store& store) { store.Events(1); }},
      {"usage WHERE job", [](Store& store) { store.Usage(1); }},
      {"measured_times WHERE job", [](Store& store) { store.MeasuredOf(1); }},
      {"row_counts WHERE job", [](Store& store) { store.Events(1); }}};
  for (const auto& [rows, read] : losses) {
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      Fill(store, 2);
      EndJob(store, 1, RecordState::kDone);
    }
    {
      Database database(path);
      database.Run("PRAGMA foreign_keys = OFF");
      database.Run(fmt::format("DELETE FROM {} = 1", rows));
    }
    Store store(path);
    EXPECT_EQ(store.Events(2).size(), 2u) << rows;
    EXPECT_THROW(read(store), Error) << rows;
  }
}

TEST(Store, AJobThatHasNotEndedIsMissedByItsNumber) {
  for (const char* loss : {"DELETE FROM jobs WHERE id = 2", "DELETE FROM attempts WHERE job = 2"}) {
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      Fill(store, 3);
    }
    {
      Database database(path);
      database.Run("PRAGMA foreign_keys = OFF");
      database.Run(loss);
    }
    EXPECT_THROW(Store store(path), Error) << loss;
  }
}

TEST(Store, RefusesTablesOfANewerVersion) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  // The version stands in bytes 60 to 63 of the file, big-endian.
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

TEST(Store, RefusesAnEmptyFileInsteadOfBeginningAnew) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { std::ofstream file(path); }
  EXPECT_THROW(Store store(path), Error);
  EXPECT_EQ(CopiesIn(directory).size(), 1u);
}

// Opened, it holds all that was written; else it is refused and there is a copy.
void ExpectIntactOrRefused(const TemporaryDirectory& directory, JobId jobs, int* refused) {
  const std::string corrupt = ReadFile(directory / "state.db");
  try {
    Store store(directory / "state.db");
    ExpectFilled(store, jobs);
  } catch (const Error& error) {
    ++*refused;
    ASSERT_EQ(error.code(), ErrorCode::kData) << error.what();
    const auto copies = CopiesIn(directory);
    if (std::string(error.what()).find("newer version") != std::string::npos) return;
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_THAT(error.what(), HasSubstr(copies[0]));
    EXPECT_THAT(error.what(), HasSubstr(".recover"));
    EXPECT_EQ(ReadFile(copies[0]), corrupt);
    std::filesystem::remove(copies[0]);
    std::filesystem::remove(copies[0] + "-wal");
  }
}

TEST(Store, IsIntactOrRefusedWhateverByteChanges) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    Fill(store, 3);
  }
  const std::string whole = ReadFile(path);
  int refused = 0;
  constexpr int kTrials = 400;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = Philox::Draw(PhiloxKey(1, "damage"), seed);
    std::string corrupt = whole;
    // Half of them where there is something: the beginning of the file or other than zero.
    size_t at = drawn[0] % corrupt.size();
    if (seed % 2)
      while (corrupt[at] == 0) at = (at + 1) % corrupt.size();
    corrupt[at] = static_cast<char>(corrupt[at] ^ (1 + drawn[1] % 255));
    std::ofstream(path, std::ios::binary) << corrupt;
    ExpectIntactOrRefused(directory, 3, &refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, kTrials / 8);
}

TEST(Store, IsRefusedWhereverItIsCutShort) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    Fill(store, 3);
  }
  const std::string whole = ReadFile(path);
  int refused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const size_t size = Philox::Draw(PhiloxKey(2, "cut"), seed)[0] % whole.size();
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    ExpectIntactOrRefused(directory, 3, &refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(refused, 40);
}

// A writer that is killed at a moment that the seed chooses. It says what has been acknowledged
// through shared memory.
TEST(Store, KeepsWhatWasAcknowledgedWhenItsWriterIsKilled) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  auto* acknowledged = static_cast<volatile int64_t*>(
      ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(acknowledged, MAP_FAILED);
  *acknowledged = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const pid_t writer = ::fork();
    if (writer == 0) {
      Store store(path);
      for (JobId id = store.LastJob() + 1;; ++id) {
        store.Transact([&] {
          store.Put(SampleJob(id));
          store.Put(SampleAttempt(id));
          store.AddEvent({.job = id, .kind = "submitted"});
        });
        *acknowledged = id;
      }
    }
    ASSERT_GT(writer, 0);
    const auto microseconds = 5000 + Philox::Draw(PhiloxKey(3, "kill"), seed)[0] % 40000;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const int64_t expected = *acknowledged;
    Store store(path);
    const JobId last = store.LastJob();
    EXPECT_GE(last, expected);
    EXPECT_LE(last, expected + 1);
    for (JobId id = 1; id <= last; ++id) {
      ASSERT_TRUE(store.FindJob(id));
      ASSERT_EQ(store.Attempts(id).size(), 1u);
      ASSERT_EQ(store.Events(id).size(), 1u);
    }
    *acknowledged = last;
  }
  EXPECT_GT(*acknowledged, 0);
  ::munmap(const_cast<int64_t*>(acknowledged), sizeof(int64_t));
}

// Fills a small file system; exits with what is wrong, 0 for nothing, 100 if none can be had.
[[noreturn]] void FillADisk(const std::string& directory) {
  // In a name space of its own: the mount ends with this process.
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=512k") != 0)
    ::_exit(100);
  JobId id = 0;
  int wrong = 0;
  {
    Store store(directory + "/state.db");
    try {
      for (;; ++id)
        store.Transact([&] {
          store.Put(SampleJob(id + 1));
          store.Put(SampleAttempt(id + 1));
        });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) wrong = 1;
    }
    if (id == 0 || store.LastJob() != id || !store.FindJob(id)) wrong = 2;
  }
  Store store(directory + "/state.db");
  ::_exit(store.LastJob() == id ? wrong : 3);
}

TEST(Store, AFullDiskLosesNothing) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) FillADisk(directory.path());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "needs the right to mount a file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace renzan::cluster::local
