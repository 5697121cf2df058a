#include "renzan/base/file/lossy_file_system.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

constexpr uint64_t kRuns = 200;
const std::string kOldText(100, 'o');
const std::string kNewText(300, 'n');

// What is at `path`: its content, or "(none)".
std::string StateOf(const std::string& path) {
  return FileExists(path) ? ReadFile(path) : "(none)";
}

// A file of `content`, closed; synced if asked to.
void Make(LossyFileSystem& disk, const std::string& path, const std::string& content, bool sync) {
  const int fd = disk.OpenForWriting(path);
  ASSERT_GE(fd, 0) << path;
  ASSERT_EQ(disk.Write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  ASSERT_EQ(sync ? disk.Sync(fd) : 0, 0);
  ASSERT_EQ(disk.Close(fd), 0);
}

// The states of `name` that 200 crashes after `change` left. Before `change`, "old" and "dir" are
// durable.
template <typename Change>
std::set<std::string> StatesAfter(const std::string& name, const Change& change) {
  std::set<std::string> states;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    TemporaryDirectory dir;
    LossyFileSystem disk;
    {
      const ScopedFileSystem scope(disk);
      CreateDirectories(dir / "dir");
      WriteFileAtomically(dir / "old", kOldText);
    }
    change(disk, dir);
    disk.Crash(seed);
    states.insert(StateOf(dir / name));
  }
  return states;
}

using States = std::set<std::string>;

TEST(LossyFileSystem, LosesBytesThatWereNotSynced) {
  const States states = StatesAfter("new", [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    Make(disk, dir / "new", kNewText, false);
    ASSERT_EQ(disk.SyncDirectory(dir.path()), 0);
  });
  EXPECT_FALSE(states.contains("(none)"));
  EXPECT_TRUE(states.contains(kNewText));
  EXPECT_TRUE(states.contains(""));
  int cut = 0, zeros = 0, garbage = 0;
  for (const std::string& state : states) {
    EXPECT_LE(state.size(), kNewText.size());
    const size_t same = state.find_first_not_of('n');
    if (same == std::string::npos) {
      ++cut;
    } else if (state.find_first_not_of('\0', same) == std::string::npos) {
      ++zeros;
    } else {
      ++garbage;
    }
  }
  EXPECT_GT(cut, 5);
  EXPECT_GT(zeros, 5);
  EXPECT_GT(garbage, 5);
}

TEST(LossyFileSystem, KeepsBytesThatWereSynced) {
  const States states = StatesAfter("new", [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    const int fd = disk.OpenForWriting(dir / "new");
    disk.Write(fd, kNewText.data(), kNewText.size());
    disk.Sync(fd);
    disk.Write(fd, "tail", 4);
    disk.Close(fd);
    disk.SyncDirectory(dir.path());
  });
  EXPECT_TRUE(states.contains(kNewText));
  EXPECT_TRUE(states.contains(kNewText + "tail"));
  EXPECT_GT(states.size(), 4u);
  for (const std::string& state : states) EXPECT_EQ(state.substr(0, kNewText.size()), kNewText);
}

TEST(LossyFileSystem, LosesPartsOfOverwrites) {
  const States states = StatesAfter("new", [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    const int fd = disk.OpenForWriting(dir / "new");
    disk.Write(fd, "head-body", 9);
    disk.Sync(fd);
    disk.WriteAt(fd, "HEAD", 4, 0);
    disk.Close(fd);
    disk.SyncDirectory(dir.path());
  });
  EXPECT_TRUE(states.contains("head-body"));
  EXPECT_TRUE(states.contains("HEAD-body"));
  EXPECT_TRUE(states.contains("HEad-body"));
  for (const std::string& state : states) EXPECT_EQ(state.substr(4), "-body");
}

TEST(LossyFileSystem, ATruncatedFileHasItsOldOrNewContent) {
  const States states = StatesAfter("old", [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    Make(disk, dir / "old", kNewText, false);
  });
  EXPECT_TRUE(states.contains(kOldText));
  EXPECT_TRUE(states.contains(kNewText));
  EXPECT_TRUE(states.contains(""));
  EXPECT_FALSE(states.contains("(none)"));
}

TEST(LossyFileSystem, ANameIsDurableOnceItsDirectoryIsSynced) {
  const auto create = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    Make(disk, dir / "dir/new", kNewText, true);
  };
  EXPECT_EQ(StatesAfter("dir/new", create), (States{"(none)", kNewText}));
  EXPECT_EQ(StatesAfter("dir/new",
                        [&](LossyFileSystem& disk, TemporaryDirectory& dir) {
                          create(disk, dir);
                          disk.SyncDirectory(dir.path());  // not the one that holds the name
                        }),
            (States{"(none)", kNewText}));
  EXPECT_EQ(StatesAfter("dir/new",
                        [&](LossyFileSystem& disk, TemporaryDirectory& dir) {
                          create(disk, dir);
                          disk.SyncDirectory(dir / "dir");
                        }),
            States{kNewText});
}

TEST(LossyFileSystem, ARenameIsDoneOrUndone) {
  const auto replace = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    Make(disk, dir / "new", kNewText, true);
    disk.SyncDirectory(dir.path());
    ASSERT_EQ(disk.Rename(dir / "new", dir / "old"), 0);
  };
  EXPECT_EQ(StatesAfter("old", replace), (States{kOldText, kNewText}));
  EXPECT_EQ(StatesAfter("new", replace), (States{"(none)", kNewText}));
  const auto replace_and_sync = [&](LossyFileSystem& disk, TemporaryDirectory& dir) {
    replace(disk, dir);
    disk.SyncDirectory(dir.path());
  };
  EXPECT_EQ(StatesAfter("old", replace_and_sync), States{kNewText});
  EXPECT_EQ(StatesAfter("new", replace_and_sync), States{"(none)"});
}

TEST(LossyFileSystem, AnUnlinkIsDoneOrUndone) {
  const auto unlink = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    ASSERT_EQ(disk.Unlink(dir / "old"), 0);
  };
  EXPECT_EQ(StatesAfter("old", unlink), (States{"(none)", kOldText}));
  EXPECT_EQ(StatesAfter("old",
                        [&](LossyFileSystem& disk, TemporaryDirectory& dir) {
                          unlink(disk, dir);
                          disk.SyncDirectory(dir.path());
                        }),
            States{"(none)"});
}

TEST(LossyFileSystem, AFileSyncedInALostDirectoryIsLost) {
  const auto fill = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    ASSERT_EQ(disk.MakeDirectory(dir / "made"), 0);
    Make(disk, dir / "made/new", kNewText, true);
    disk.SyncDirectory(dir / "made");
  };
  EXPECT_EQ(StatesAfter("made/new", fill), (States{"(none)", kNewText}));
  EXPECT_EQ(StatesAfter("made/new",
                        [&](LossyFileSystem& disk, TemporaryDirectory& dir) {
                          fill(disk, dir);
                          disk.SyncDirectory(dir.path());
                        }),
            States{kNewText});
}

TEST(LossyFileSystem, ARenamedDirectoryKeepsItsUnsyncedNames) {
  const auto publish = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    Make(disk, dir / "dir/new", kNewText, true);
    ASSERT_EQ(disk.Rename(dir / "dir", dir / "out"), 0);
    disk.SyncDirectory(dir.path());
  };
  EXPECT_EQ(StatesAfter("out/new", publish), (States{"(none)", kNewText}));
  EXPECT_EQ(StatesAfter("dir/new", publish), States{"(none)"});
}

TEST(LossyFileSystem, ARemovedTreeMayReappearInParts) {
  const auto remove = [](LossyFileSystem& disk, TemporaryDirectory& dir) {
    WriteFileAtomically(dir / "dir/a", "1");
    WriteFileAtomically(dir / "dir/b", "2");
    ASSERT_EQ(disk.RemoveTree(dir / "dir"), 0);
    ASSERT_FALSE(FileExists(dir / "dir"));
    ASSERT_EQ(disk.RemoveTree(dir / "dir"), 0);
  };
  EXPECT_EQ(StatesAfter("dir/a", remove), (States{"(none)", "1"}));
  EXPECT_EQ(StatesAfter("dir/b", remove), (States{"(none)", "2"}));
}

TEST(LossyFileSystem, TheSameSeedGivesTheSameCrash) {
  std::set<std::string> states;
  for (int repeat = 0; repeat < 3; ++repeat) {
    TemporaryDirectory dir;
    LossyFileSystem disk;
    Make(disk, dir / "new", kNewText, false);
    disk.SyncDirectory(dir.path());
    disk.Crash(5);
    states.insert(StateOf(dir / "new"));
  }
  EXPECT_EQ(states.size(), 1u);
}

TEST(LossyFileSystem, IsThreadSafe) {
  TemporaryDirectory dir;
  LossyFileSystem disk;
  {
    const ScopedFileSystem scope(disk);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&dir, thread] {
        for (int i = 0; i < 50; ++i)
          WriteFileAtomically(fmt::format("{}/{}", dir.path(), thread), std::to_string(i));
      });
  }
  EXPECT_EQ(disk.operations(), 4u * 50 * 6);
  disk.Crash(0);
  for (int thread = 0; thread < 4; ++thread)
    EXPECT_EQ(ReadFile(dir / std::to_string(thread)), "49");
}

TEST(LossyFileSystem, NothingHappensWithoutPower) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "old", kOldText);
  LossyFileSystem disk;
  const uint64_t before = disk.operations();
  disk.PowerOffAfter(1);
  const int fd = disk.OpenForWriting(dir / "new");
  ASSERT_GE(fd, 0);
  errno = 0;
  EXPECT_EQ(disk.Write(fd, "x", 1), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(disk.Sync(fd), -1);
  EXPECT_EQ(disk.Close(fd), -1);
  EXPECT_EQ(disk.Rename(dir / "old", dir / "other"), -1);
  EXPECT_EQ(disk.Unlink(dir / "old"), -1);
  EXPECT_EQ(disk.MakeDirectory(dir / "made"), -1);
  EXPECT_EQ(disk.SyncDirectory(dir.path()), -1);
  EXPECT_EQ(disk.operations() - before, 8u);
  EXPECT_EQ(ReadFile(dir / "old"), kOldText);
  EXPECT_EQ(ReadFile(dir / "new"), "");
  EXPECT_FALSE(FileExists(dir / "made"));
  disk.Crash(0);
  EXPECT_EQ(disk.MakeDirectory(dir / "made"), 0);
}

TEST(LossyFileSystem, AFullDiskAcceptsWhatFits) {
  TemporaryDirectory dir;
  LossyFileSystem disk;
  disk.FailWritesAfter(5, ENOSPC);
  const int fd = disk.OpenForWriting(dir / "x");
  EXPECT_EQ(disk.Write(fd, "abc", 3), 3);
  EXPECT_EQ(disk.Write(fd, "def", 3), 2);
  errno = 0;
  EXPECT_EQ(disk.Write(fd, "f", 1), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(disk.WriteAt(fd, "A", 1, 0), -1);
  disk.Heal();
  EXPECT_EQ(disk.Write(fd, "f", 1), 1);
  EXPECT_EQ(disk.Close(fd), 0);
  EXPECT_EQ(ReadFile(dir / "x"), "abcdef");
}

}  // namespace
}  // namespace renzan
