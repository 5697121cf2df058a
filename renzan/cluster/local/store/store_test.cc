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
    store.Put(EndedJob(1, RecordState::kDone));
    store.Put(SampleJob(2));
    Fail(ErrorCode::kIo, "in the middle");
  }),
               Error);
  ExpectFilledStore(store, 1);
}

TEST(Store, AnAttemptNeedsItsJob) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  AttemptRecord attempt = SampleAttempt(5);
  attempt.ended = 7;
  EXPECT_THROW(store.Transact([&] { store.Put(attempt); }), Error);
}

TEST(Store, ListsRecentlyEndedJobs) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  store.Transact([&] {
    for (JobId id = 1; id <= 3; ++id) {
      JobRecord job = id < 3 ? EndedJob(id, RecordState::kFailed) : SampleJob(id);
      if (id < 3) job.exit_code = 3;
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
  store.Transact([&] { store.DeleteJobs({1, 3}); });
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

// A daemon that finds the file knows of each job what the one before knew.
TEST(Store, AJobIsReadAsItWasWritten) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  JobRecord waits = SampleJob(1);
  waits.state = RecordState::kPending;
  waits.attempts = 0;
  waits.attempt.reset();
  waits.held_by = "ann";
  waits.reservation = {{"n0", 2, {}}, {"n1", 1, {}}};
  waits.waiting_since = 7;
  waits.eligible_at = 8;
  waits.attained_worker_ms = 9;
  waits.reservation_yields = 2;
  waits.failed_on = {"n2"};
  waits.measured = {.checkpoint_ms = 1, .restart_ms = 2, .killed_after_ms = 3};
  JobRecord runs = SampleJob(2);
  runs.attempt->stopping_for = 1;
  JobRecord collects = EndedJob(3, RecordState::kCollecting);
  collects.ended.reset();
  collects.attempts = 0;
  collects.exit_code = 4;
  collects.cancel_requested = true;
  collects.collection = {.becomes = RecordState::kFailed, .ended = 77, .text = "failed"};
  {
    Store store(path);
    store.Transact([&] {
      for (const JobRecord* job : {&waits, &runs, &collects}) store.Put(*job);
    });
  }
  Store store(path);
  const std::vector<JobRecord> jobs = store.UnfinishedJobs();
  ASSERT_EQ(jobs.size(), 3u);
  const JobRecord* const written[] = {&waits, &runs, &collects};
  for (size_t at = 0; at < 3; ++at) {
    const JobRecord &job = jobs[at], &sample = *written[at];
    EXPECT_EQ(static_cast<const JobFacts&>(job), sample);
    EXPECT_EQ(job.measured, sample.measured);
    EXPECT_EQ(job.held_by, sample.held_by);
    EXPECT_EQ(job.reservation, sample.reservation);
    EXPECT_EQ(job.cancel_requested, sample.cancel_requested);
    EXPECT_EQ(job.spec, sample.spec);
    ASSERT_EQ(job.attempt.has_value(), sample.attempt.has_value());
    ASSERT_EQ(job.collection.has_value(), sample.collection.has_value());
  }
  EXPECT_EQ(static_cast<const AttemptFacts&>(*jobs[1].attempt), *runs.attempt);
  EXPECT_EQ(jobs[1].attempt->number, 0);
  EXPECT_EQ(jobs[2].collection->becomes, RecordState::kFailed);
  EXPECT_EQ(jobs[2].collection->ended, 77);
  EXPECT_EQ(jobs[2].collection->text, "failed");
}

// What is not text in UTF-8, such as a message of a program, prevents no write.
TEST(Store, AMessageMayBeAnyBytes) {
  TemporaryDirectory directory;
  Store store(directory / "state.db");
  JobRecord job = SampleJob(1);
  job.message = "a\xff";
  store.Transact([&] { store.Put(job); });
  EXPECT_EQ(store.FindJob(1)->message, "a\uFFFD");
}

}  // namespace
}  // namespace renzan::cluster::local
