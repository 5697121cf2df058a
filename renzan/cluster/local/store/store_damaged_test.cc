// Jobs whose records are damaged, beside others.

#include <gmock/gmock.h>

#include <fstream>
#include <functional>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/local/store/sqlite.h"
#include "renzan/cluster/local/store/store_tables.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// With texts that are in the file once.
JobRecord UniqueJob(JobId id) {
  JobRecord job = SampleJob(id);
  job.queue = fmt::format("queue-{}", id);
  job.spec = fmt::format("command: [train-{}]\n", id);
  job.manifest = fmt::format("{{\"job\":\"manifest-{}\"}}", id);
  return job;
}

// `ended`: all jobs, as done.
void FillUniquely(Store& store, JobId jobs, bool ended) {
  for (JobId id = 1; id <= jobs; ++id)
    store.Transact([&] {
      JobRecord job = UniqueJob(id);
      store.Put(job, EventRecord{.time = 5, .kind = "submitted", .text = "by ann"});
      store.PutUsage(id, {.gpu_seconds = 1.5, .cost = 0.25});
      if (!ended) return store.Put(job, EventRecord{.time = 6, .kind = "started", .text = "0"});
      AttemptRecord attempt = *std::exchange(job.attempt, {});
      attempt.ended = attempt.started;
      store.Put(attempt);
      job.state = RecordState::kDone;
      job.ended = 100 * id;
      store.Put(job, EventRecord{.time = 6, .kind = "done", .text = "done"});
    });
}

// Where a part of a job is in the file: in the row itself, not in an index.
size_t Find(const std::string& file, const std::string& path, JobId id, const std::string& part) {
  const auto checksum_of = [&](const char* table, const char* key) {
    Database database(path);
    return file.find(
        database.QueryOne(fmt::format("SELECT checksum FROM {} WHERE {} = {}", table, key, id))
            .Text(0));
  };
  if (part == "document") return file.find(fmt::format("\"name\":\"job-{}\"", id)) + 9;
  if (part == "spec") return file.find(fmt::format("[train-{}]", id)) + 1;
  if (part == "manifest") return file.find(fmt::format("manifest-{}", id));
  if (part == "checksum") return checksum_of("jobs", "id");
  if (part == "checksum of texts") return checksum_of("job_texts", "job");
  const std::string queue = fmt::format("queue-{}", id);
  for (const std::string state : {"running", "done"}) {
    const std::string start = queue + "ann" + state;
    for (size_t at = file.find(start); at != file.npos; at = file.find(start, at + 1)) {
      const size_t document = file.find("{\"", at);
      if (document > at + start.size() + 8) continue;  // an index
      if (part == "queue") return at;
      if (part == "user") return at + queue.size();
      if (part == "state") return at + queue.size() + 3;
      if (part == "number of events") return document - 1;
    }
  }
  return file.npos;
}

constexpr const char* kParts[] = {"document",          "spec",  "manifest", "checksum",
                                  "checksum of texts", "queue", "user",     "state",
                                  "number of events"};

void Damage(const std::string& path, JobId id, const std::string& part) {
  std::string file = ReadFile(path);
  const size_t at = Find(file, path, id, part);
  ASSERT_LT(at, file.size()) << part;
  file[at] = static_cast<char>(file[at] ^ 4);
  std::ofstream(path, std::ios::binary) << file;
}

void ExpectNoCorruption(const TemporaryDirectory& directory) {
  EXPECT_THAT(CopiesIn(directory), IsEmpty());
  Database database(directory / "state.db");
  EXPECT_EQ(database.QueryOne("PRAGMA integrity_check").Text(0), "ok");
}

JobRecord FailedFrom(const DamagedJob& damaged) {
  JobRecord job = damaged.record;
  job.state = RecordState::kFailed;
  job.ended = 1000;
  job.attempts = 0;
  job.attempt.reset();
  return job;
}

TEST(StoreDamaged, EndsAloneWhicheverPartIsDamaged) {
  for (const char* part : kParts) {
    SCOPED_TRACE(part);
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      FillUniquely(store, 3, /*ended=*/false);
    }
    Damage(path, 2, part);
    {
      Store store(path);
      const std::vector<DamagedJob> damaged = store.DamagedJobs();
      ASSERT_THAT(damaged, SizeIs(1));
      EXPECT_EQ(damaged[0].record.id, 2);
      EXPECT_EQ(damaged[0].record.queue, "queue-2");
      EXPECT_EQ(damaged[0].record.user, "ann");
      EXPECT_EQ(damaged[0].record.state, RecordState::kRunning);
      EXPECT_THAT(damaged[0].record.damaged, HasSubstr("its record in state.db is damaged"));
      const bool of_texts = std::string(part).find("text") != std::string::npos ||
                            std::string(part) == "spec" || std::string(part) == "manifest";
      EXPECT_EQ(damaged[0].owner_known, of_texts);
      EXPECT_EQ(damaged[0].record.uid, of_texts ? 1000 : kNobodysJob);
      EXPECT_EQ(damaged[0].record.spec, of_texts ? "" : UniqueJob(2).spec);
      std::vector<JobId> intact;
      for (const JobRecord& job : store.UnfinishedJobs()) intact.push_back(job.id);
      EXPECT_THAT(intact, ElementsAre(1, 3));
      EXPECT_EQ(store.FindJob(1)->spec, UniqueJob(1).spec);
      store.Transact([&] {
        store.PutSalvaged(FailedFrom(damaged[0]), {.time = 7, .kind = "failed", .text = "damaged"});
      });
      EXPECT_THAT(store.DamagedJobs(), IsEmpty());
    }
    {
      Store store(path);
      EXPECT_EQ(store.LastJob(), 3);
      EXPECT_THAT(store.UnfinishedJobs(), SizeIs(2));
      EXPECT_EQ(store.FindJob(2)->state, RecordState::kFailed);
      EXPECT_THAT(store.Events(2), SizeIs(3));
      EXPECT_EQ(store.CountByState(),
                (std::map<std::string, int64_t>{{"running", 2}, {"failed", 1}}));
      EXPECT_EQ((store.UsageOfEnded()[{"queue-2", "ann"}].gpu_seconds), 1.5);
      store.Transact([&] { store.Put(UniqueJob(4)); });
      EXPECT_THAT(store.EndedJobs({.queue = "queue-2"}, 9), SizeIs(1));
    }
    ExpectNoCorruption(directory);
    // What was there is not lost.
    Database database(path);
    const auto kept = database.Query("SELECT count(*) FROM damaged WHERE job = 2");
    EXPECT_GE(kept.at(0).Int(0), 4);
  }
}

// It stays as it is; what it was is known from an index.
TEST(StoreDamaged, AnEndedJobIsShownAndCanBeDeleted) {
  for (const char* part : kParts) {
    SCOPED_TRACE(part);
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      FillUniquely(store, 3, /*ended=*/true);
    }
    Damage(path, 2, part);
    {
      Store store(path);
      const std::optional<JobRecord> job = store.FindJob(2);
      ASSERT_TRUE(job);
      EXPECT_EQ(job->state, RecordState::kDone);
      EXPECT_EQ(job->ended, 200);
      EXPECT_EQ(job->queue, "queue-2");
      EXPECT_THAT(job->damaged, HasSubstr("damaged"));
      EXPECT_THAT(store.EndedJobs({}, 9), SizeIs(3));
      EXPECT_THAT(store.Attempts(2), SizeIs(1));
      EXPECT_THAT(store.Events(2), SizeIs(2));
      EXPECT_EQ(store.Usage(2).gpu_seconds, 1.5);
      EXPECT_EQ(store.FindJob(1)->damaged, "");
      EXPECT_FALSE(store.corruption());
      store.Transact([&] { store.DeleteJobs({2}); });
      EXPECT_FALSE(store.FindJob(2));
      EXPECT_EQ((store.UsageOfEnded()[{"queue-2", "ann"}].gpu_seconds), 1.5);
      EXPECT_EQ(store.CountByState().at("done"), 2);
    }
    ExpectNoCorruption(directory);
  }
}

// Who wrote it knows better than the disk.
TEST(StoreDamaged, ARecordThatIsWrittenAgainIsIntact) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  Store store(path);
  FillUniquely(store, 2, /*ended=*/false);
  { Database(path).Run("UPDATE jobs SET document = 'x' WHERE id = 2"); }
  EXPECT_THAT(store.DamagedJobs(), SizeIs(1));
  JobRecord job = UniqueJob(2);
  job.spec.clear();
  store.Transact([&] { store.Put(job, EventRecord{.time = 7, .kind = "stopping", .text = ""}); });
  EXPECT_THAT(store.DamagedJobs(), IsEmpty());
  EXPECT_EQ(store.FindJob(2)->spec, UniqueJob(2).spec);
  EXPECT_THAT(store.Events(2), SizeIs(3));
  Database database(path);
  EXPECT_EQ(database.QueryOne("SELECT value FROM damaged WHERE part = 'document'").Text(0), "x");
}

// The daemon would not know what becomes of the job once its artifacts are copied.
TEST(StoreDamaged, AJobThatCollectsWithoutAnEndIsDamaged) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    JobRecord collects = EndedJob(1, RecordState::kCollecting);
    collects.ended.reset();
    collects.attempts = 0;
    store.Transact([&] { store.Put(collects); });
  }
  Store store(path);
  ASSERT_THAT(store.DamagedJobs(), SizeIs(1));
  EXPECT_THAT(store.DamagedJobs()[0].record.damaged, HasSubstr("how job 1 ended is missing"));
}

}  // namespace
}  // namespace renzan::cluster::local
