#include "renzan/cluster/local/store/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "renzan/base/error.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

TEST(Store, KeepsEverythingWhenReopened) {
  TemporaryDirectory directory;
  {
    Store store(directory / "state.db");
    EXPECT_EQ(store.LastJob(), 0);
    EXPECT_EQ(store.AccountedUntil(), std::nullopt);
    FillStore(store, 3);
    ExpectFilledStore(store, 3);
  }
  Store store(directory / "state.db");
  ExpectFilledStore(store, 3);
  struct stat about;
  ASSERT_EQ(::stat((directory / "state.db").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(Store, RollsBackATransactionThatThrows) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  FillStore(store, 1);
  EXPECT_THROW(store.Transact([&] {
    JobRecord job = SampleJob(1);
    job.state = RecordState::kDone;
    job.ended = 7;
    store.Put(job);
    store.Put(SampleJob(2));
    Fail(ErrorCode::kIo, "in the middle");
  }),
               Error);
  ExpectFilledStore(store, 1);
}

TEST(Store, AnAttemptNeedsItsJob) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  EXPECT_THROW(store.Transact([&] { store.Put(SampleAttempt(5)); }), Error);
}

TEST(Store, ListsRecentlyEndedJobs) {
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
  ASSERT_EQ(store.EndedBefore(200, {}, 9).size(), 1u);
  EXPECT_EQ(store.EndedBefore(200, {}, 9)[0].id, 1);
  EXPECT_TRUE(store.EndedBefore(200, store.EndedBefore(200, {}, 9)[0], 9).empty());
  EXPECT_EQ(store.FirstEnd(), 100);
  ASSERT_EQ(store.UnfinishedJobs().size(), 1u);
  EXPECT_EQ(store.UnfinishedJobs()[0].id, 3);
}

TEST(Store, CountsJobsAsTheyEnd) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  FillStore(store, 4);
  EndJob(store, 1, RecordState::kDone);
  EndJob(store, 2, RecordState::kDone);
  EndJob(store, 3, RecordState::kFailed);
  using Counts = std::map<std::string, int64_t>;
  EXPECT_EQ(store.CountByState(), (Counts{{"running", 1}, {"done", 2}, {"failed", 1}}));
  EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 4.5);
  store.Transact([&] { store.PutReservations({{1, {{"n0", 1, {}}}}, {2, {{"n1", 1, {}}}}}); });
  store.Transact([&] { store.DeleteJobs({1, 3}); });
  ASSERT_EQ(store.Reservations().size(), 1u);
  EXPECT_EQ(store.Reservations()[0].job, 2);
  EXPECT_EQ(store.CountByState(), (Counts{{"running", 1}, {"done", 1}}));
  EXPECT_EQ((store.UsageOfEnded()[{"default", "ann"}].gpu_seconds), 4.5);
  EXPECT_EQ(store.LastJob(), 4);
}

TEST(Store, KeepsTheRunTimesOfTheLastGenerations) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  constexpr int64_t kGeneration = RunTimes::kGeneration;
  const auto add = [&](int64_t jobs) {
    store.Transact([&] {
      for (int64_t job = 0; job < jobs; ++job) store.AddRunTime({"q", "ann", "train", 8}, 1000);
    });
  };
  add(2 * kGeneration - 1);
  EXPECT_EQ(store.EndedRunTimesAfter(0).front().number, 1);
  add(1);
  EXPECT_EQ(store.EndedRunTimesAfter(0).front().number, kGeneration + 1);
  const std::vector<EndedRunTime> last = store.EndedRunTimesAfter(2 * kGeneration - 2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[1].number, 2 * kGeneration);
  EXPECT_EQ(last[1].traits.user, "ann");
}

TEST(Store, APredictionLastsUntilTheJobEnds) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  store.Transact([&] { store.Put(SampleJob(1)); });
  EXPECT_EQ(store.UnfinishedJobs().at(0).run_time, SampleJob(1).run_time);
  EndJob(store, 1, RecordState::kDone);
  store.Transact([&] { store.DeleteJobs({1}); });
}

TEST(Store, YieldsLastUntilTheJobEnds) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    JobRecord job = SampleJob(1);
    job.attempts = 0;
    store.Transact([&] { store.Put(job); });
    EXPECT_EQ(store.UnfinishedJobs().at(0).reservation_yields, 0);
    job.reservation_yields = 2;
    store.Transact([&] { store.Put(job); });
  }
  Store store(path);
  EXPECT_EQ(store.UnfinishedJobs().at(0).reservation_yields, 2);
  EndJob(store, 1, RecordState::kDone);
  store.Transact([&] { store.DeleteJobs({1}); });
}

TEST(Store, ACollectionLastsUntilTheJobEnds) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 1);
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

}  // namespace
}  // namespace renzan::cluster::local
