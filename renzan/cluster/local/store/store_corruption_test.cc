// Corrupt databases are detected, copied and refused.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/local/store/sqlite.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

// As if a corrupt page had lost rows: there is no checksum left to check.
TEST(StoreCorruption, DetectsLostRowsOfEndedJobsWhenTheyAreRead) {
  const std::pair<const char*, std::function<void(Store&)>> losses[] = {
      {"jobs WHERE id", [](Store& store) { store.FindJob(1); }},
      {"attempts WHERE job", [](Store& store) { store.Attempts(1); }},
      {"events WHERE number = 1 AND job", [](Store& store) { store.Events(1); }},
      {"usage WHERE job", [](Store& store) { store.Usage(1); }}};
  for (const auto& [rows, read] : losses) {
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      FillStore(store, 2);
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

TEST(StoreCorruption, DetectsLostRowsOfUnfinishedJobsWhenOpened) {
  for (const char* loss : {"DELETE FROM jobs WHERE id = 2", "DELETE FROM attempts WHERE job = 2"}) {
    TemporaryDirectory directory;
    const std::string path = directory / "state.db";
    {
      Store store(path);
      FillStore(store, 3);
      store.Transact([&] {  // its second attempt runs
        JobRecord job = SampleJob(2);
        AttemptRecord ended = *job.attempt;
        ended.ended = ended.started;
        job.attempts = 2;
        store.Put(job);
        store.Put(ended);
      });
    }
    {
      Database database(path);
      database.Run("PRAGMA foreign_keys = OFF");
      database.Run(loss);
    }
    EXPECT_THROW(Store store(path), Error) << loss;
  }
}

TEST(StoreCorruption, RefusesAnEmptyFile) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { std::ofstream file(path); }
  EXPECT_THROW(Store store(path), Error);
  EXPECT_EQ(CopiesIn(directory).size(), 1u);
}

TEST(StoreCorruption, KeepsOneCopyOfTheSameContent) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  std::string first;
  for (const std::string content : {"not a database", "not a database", "not a Database"}) {
    std::ofstream(path) << content;
    try {
      Store store(path);
      FAIL() << "it was opened";
    } catch (const Error& error) {
      const auto copies = CopiesIn(directory);
      if (first.empty()) first = copies.at(0);
      EXPECT_EQ(copies.size(), content == "not a Database" ? 2u : 1u);
      if (copies.size() == 1) {
        EXPECT_THAT(error.what(), HasSubstr(first));
      }
    }
  }
}

// The store either opens with everything that was written, or with jobs of which it says that they
// are damaged, or is refused and copied.
void ExpectIntactOrRefused(const TemporaryDirectory& directory, JobId jobs, int* refused) {
  const std::string corrupt = ReadFile(directory / "state.db");
  try {
    Store store(directory / "state.db");
    const std::vector<DamagedJob> damaged = store.DamagedJobs();
    if (damaged.empty()) return ExpectFilledStore(store, jobs);
    ++*refused;
    EXPECT_EQ(store.UnfinishedJobs().size() + damaged.size(), static_cast<size_t>(jobs));
    for (const DamagedJob& job : damaged) EXPECT_EQ(job.record.user, "ann");
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

TEST(StoreCorruption, IsIntactOrRefusedWhicheverByteChanges) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 3);
  }
  const std::string whole = ReadFile(path);
  int refused = 0;
  constexpr int kTrials = 400;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = Philox::Draw(PhiloxKey(1, "damage"), seed);
    std::string corrupt = whole;
    // Every other trial changes a byte that is not zero.
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

TEST(StoreCorruption, IsRefusedWhereverItIsTruncated) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  {
    Store store(path);
    FillStore(store, 3);
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

}  // namespace
}  // namespace renzan::cluster::local
