// Specifications and manifests, which are rows of their own.

#include <gtest/gtest.h>

#include <filesystem>

#include "renzan/cluster/local/store/old_store_testing.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

// A transition does not write what it does not change.
TEST(StoreTexts, ATransitionLeavesTheTextsAlone) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  Store store(path);
  JobRecord job = SampleJob(1);
  job.spec = std::string(500'000, 's');
  store.Transact([&] { store.Put(job); });
  Database(path).Run("PRAGMA wal_checkpoint(TRUNCATE)");
  job.spec.clear();
  for (int i = 0; i < 20; ++i) store.Transact([&] { store.Put(job); });
  EXPECT_LT(std::filesystem::file_size(path + "-wal"), 20u * 20'000);
}

// Version 11 wrote a job's texts with each transition.
TEST(StoreTexts, UpgradesVersion11) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 3);
    EndJob(store, 3, RecordState::kDone);
  }
  MakeOlder(path, 11);
  {
    Database database(path);
    EXPECT_EQ(database.QueryOne("SELECT manifest FROM jobs WHERE id = 3").Text(0), "{}");
  }
  for (int opened = 0; opened < 2; ++opened) {
    Store store(path);
    EXPECT_EQ(store.UnfinishedJobs().size(), 2u);
    for (JobId id = 1; id <= 3; ++id) {
      EXPECT_EQ(store.FindJob(id)->spec, SampleJob(id).spec);
      EXPECT_EQ(store.FindJob(id)->manifest, "{}");
      EXPECT_EQ(store.FindJob(id)->run_time, SampleJob(id).run_time);
      EXPECT_EQ(store.Attempts(id).size(), 1u);
      EXPECT_EQ(store.Events(id).size(), 2u);
    }
    EXPECT_EQ(store.FindJob(3)->ended, 300);
    EXPECT_EQ(store.UnfinishedJobs()[1].attempt->placement, SampleAttempt(2).placement);
  }
  EXPECT_TRUE(CopiesIn(directory).empty());
}

// Who could not start the daemon before has its next version.
TEST(StoreTexts, UpgradesVersion11WithADamagedJob) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 4);
    EndJob(store, 3, RecordState::kDone);
  }
  MakeOlder(path, 11);
  { Database(path).Run("UPDATE jobs SET document = 'x' WHERE id IN (2, 3)"); }
  Store store(path);
  ASSERT_EQ(store.UnfinishedJobs().size(), 2u);
  EXPECT_EQ(store.UnfinishedJobs()[1].id, 4);
  EXPECT_EQ(store.FindJob(4)->spec, SampleJob(4).spec);
  EXPECT_EQ(store.FindJob(3)->state, RecordState::kDone);
  EXPECT_NE(store.FindJob(3)->damaged, "");
  const std::vector<DamagedJob> damaged = store.DamagedJobs();
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].record.id, 2);
  EXPECT_EQ(damaged[0].record.user, "ann");
  EXPECT_TRUE(CopiesIn(directory).empty());
  JobRecord failed = damaged[0].record;
  failed.state = RecordState::kFailed;
  failed.ended = 1000;
  store.Transact([&] { store.PutSalvaged(failed, {.time = 7, .kind = "failed", .text = ""}); });
  EXPECT_EQ(store.FindJob(2)->state, RecordState::kFailed);
  Database database(path);
  EXPECT_EQ(database
                .QueryOne("SELECT value FROM damaged WHERE job = 2 AND row_of = 'job_texts' AND "
                          "part = 'spec'")
                .Text(0),
            SampleJob(2).spec);
}

}  // namespace
}  // namespace renzan::cluster::local
