#include "renzan/observe/status_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <new>
#include <nlohmann/json.hpp>

#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"

namespace renzan {
namespace {

// A disk whose first sync hangs until it is released.
class HangingDisk : public FileSystem {
 public:
  int Sync(int fd) override {
    if (syncs++ == 0) {
      hangs.set_value();
      release.get_future().wait();
    }
    return FileSystem::Sync(fd);
  }

  std::promise<void> hangs, release;
  std::atomic<int> syncs = 0;
};

class FullDisk : public FileSystem {
 public:
  int OpenForWriting(const std::string&) override {
    errno = ENOSPC;
    return -1;
  }
};

class NoMemory : public FileSystem {
 public:
  int OpenForWriting(const std::string&) override { throw std::bad_alloc(); }
};

int64_t StepIn(const std::string& path) {
  return nlohmann::json::parse(ReadFile(path))["step"].get<int64_t>();
}

TEST(StatusWriter, NeverWaitsForTheDiskAndKeepsTheNewest) {
  TemporaryDirectory dir;
  HangingDisk disk;
  const ScopedFileSystem scope(disk);
  StatusWriter writer(dir / "status.json");
  writer.Write({.step = 1});
  disk.hangs.get_future().wait();
  for (int64_t step = 2; step <= 100; ++step) writer.Write({.step = step});
  disk.release.set_value();
  writer.Flush();
  EXPECT_EQ(StepIn(dir / "status.json"), 100);
  EXPECT_EQ(disk.syncs, 2) << "the statuses in between should be skipped";
  EXPECT_FALSE(writer.TakeError());
}

TEST(StatusWriter, WritesTheLastStatusBeforeItEnds) {
  TemporaryDirectory dir;
  StatusWriter(dir / "empty.json");
  EXPECT_FALSE(FileExists(dir / "empty.json"));
  for (int64_t step = 0; step < 20; ++step) {
    StatusWriter(dir / "status.json").Write({.step = step});
    EXPECT_EQ(StepIn(dir / "status.json"), step);
  }
}

template <typename Failure>
class FailingStatusWriter : public ::testing::Test {};
using Failures = ::testing::Types<FullDisk, NoMemory>;
TYPED_TEST_SUITE(FailingStatusWriter, Failures);

TYPED_TEST(FailingStatusWriter, ReportsAFailedWriteAndContinues) {
  TemporaryDirectory dir;
  StatusWriter writer(dir / "status.json");
  {
    TypeParam disk;
    const ScopedFileSystem scope(disk);
    writer.Write({});
    writer.Flush();
  }
  EXPECT_TRUE(writer.TakeError());
  EXPECT_FALSE(writer.TakeError());
  writer.Write({.step = 7});
  writer.Flush();
  EXPECT_FALSE(writer.TakeError());
  EXPECT_EQ(StepIn(dir / "status.json"), 7);
}

}  // namespace
}  // namespace renzan
