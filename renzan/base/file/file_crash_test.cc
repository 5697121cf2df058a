// Simulates a power loss at every operation of every writing function of file.h.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/lossy_file_system.h"
#include "renzan/base/file/staged.h"

namespace renzan {
namespace {

constexpr uint64_t kSeeds = 30;

struct Scenario {
  std::function<void(TemporaryDirectory&)> prepare;
  std::function<void(TemporaryDirectory&)> write;
  // Checks what the crash left; `returned`: `write` had finished without an Error.
  std::function<void(TemporaryDirectory&, bool returned)> check;
};

// One crash after `count` operations; false if `write` needs no more than that.
bool CrashAfter(uint64_t count, uint64_t seed, const Scenario& scenario) {
  SCOPED_TRACE(testing::Message() << "power off after " << count << " operations, seed " << seed);
  TemporaryDirectory dir;
  scenario.prepare(dir);
  LossyFileSystem disk;
  bool returned = false;
  {
    const ScopedFileSystem scope(disk);
    disk.PowerOffAfter(count);
    try {
      scenario.write(dir);
      returned = true;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kNoInput) << error.what();
    }
  }
  const bool cut_short = disk.operations() > count;
  EXPECT_TRUE(cut_short || returned);
  disk.Crash(seed);
  scenario.check(dir, returned);
  return cut_short;
}

// Returns how many operations `write` needs.
uint64_t CrashEverywhere(const Scenario& scenario) {
  for (uint64_t count = 0;; ++count) {
    bool cut_short = false;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      cut_short = CrashAfter(count, seed, scenario);
      if (testing::Test::HasFailure()) return count;
    }
    if (!cut_short) return count;
  }
}

const std::string kOld(5000, 'o');
const std::string kNew(9000, 'n');

TEST(FileCrash, AnAtomicallyWrittenFileIsOldOrNew) {
  const Scenario scenario = {
      .prepare = [](TemporaryDirectory& dir) { WriteFileAtomically(dir / "x", kOld); },
      .write = [](TemporaryDirectory& dir) { WriteFileAtomically(dir / "x", kNew); },
      .check =
          [](TemporaryDirectory& dir, bool returned) {
            const std::string now = ReadFile(dir / "x");
            EXPECT_TRUE(now == kNew || (now == kOld && !returned)) << now;
          },
  };
  EXPECT_GE(CrashEverywhere(scenario), 6u);
}

// Two files, one of them in a subdirectory. Commit(), not FileWriter, makes their names durable.
void Fill(const StagedDirectory& staged) {
  CreateDirectories(staged.staging() + "/folder");
  FileWriter manifest(staged.staging() + "/manifest");
  manifest.Write(kNew);
  manifest.Close();
  FileWriter shard(staged.staging() + "/folder/shard");
  shard.Write("....-body");
  shard.WriteAt(0, "head", 4);
  shard.Close();
}

void Publish(const std::string& path) {
  StagedDirectory staged(path);
  Fill(staged);
  staged.Commit();
}

void ExpectWhole(const std::string& path) {
  EXPECT_EQ(ReadFile(path + "/manifest"), kNew);
  EXPECT_EQ(ReadFile(path + "/folder/shard"), "head-body");
}

// Its parent directories are created with it.
TEST(FileCrash, AStagedDirectoryAppearsAtomically) {
  const Scenario scenario = {
      .prepare = [](TemporaryDirectory&) {},
      .write = [](TemporaryDirectory& dir) { Publish(dir / "new/parents/out"); },
      .check =
          [](TemporaryDirectory& dir, bool returned) {
            const std::string out = dir / "new/parents/out";
            if (returned || FileExists(out)) {
              ExpectWhole(out);
            } else {
              Publish(out);  // the next attempt succeeds
              ExpectWhole(out);
            }
          },
  };
  EXPECT_GE(CrashEverywhere(scenario), 20u);
}

TEST(FileCrash, AStagedDirectoryReplacesAnEmptyOneAndInterruptedWrites) {
  const Scenario scenario = {
      .prepare =
          [](TemporaryDirectory& dir) {
            CreateDirectories(dir / "out");
            CreateDirectories(dir / ".out.partial/old");
            WriteFileAtomically(dir / ".out.partial/old/stale", kOld);
          },
      .write = [](TemporaryDirectory& dir) { Publish(dir / "out"); },
      .check =
          [](TemporaryDirectory& dir, bool returned) {
            if (returned || FileExists(dir / "out/manifest")) {
              ExpectWhole(dir / "out");
              EXPECT_FALSE(FileExists(dir / "out/old"));
            } else {
              EXPECT_FALSE(FileExists(dir / "out/folder"));
            }
          },
  };
  EXPECT_GE(CrashEverywhere(scenario), 19u);
}

TEST(FileCrash, CreatedDirectoriesAreDurable) {
  const Scenario scenario = {
      .prepare = [](TemporaryDirectory&) {},
      .write = [](TemporaryDirectory& dir) { CreateDirectories(dir / "a/b/c/"); },
      .check = [](TemporaryDirectory& dir,
                  bool returned) { EXPECT_TRUE(FileExists(dir / "a/b/c") || !returned); },
  };
  EXPECT_EQ(CrashEverywhere(scenario), 6u);
}

}  // namespace
}  // namespace renzan
