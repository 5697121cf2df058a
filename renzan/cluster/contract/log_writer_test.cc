#include "renzan/cluster/contract/log_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "renzan/base/file/file.h"

namespace renzan::cluster {
namespace {

using testing::HasSubstr;

LogWriter Open(const std::string& path, int64_t max_bytes, int files) {
  return LogWriter(path, max_bytes, files, geteuid(), getegid());
}

TEST(LogWriter, RotatesBetweenLinesAndKeepsTheNewest) {
  TemporaryDirectory dir;
  LogWriter log = Open(dir / "log", 10, 3);
  for (const char* line : {"one\n", "two\n", "three\n", "four\n", "five\n", "six\n", "seven\n"})
    log.Write(line);
  EXPECT_EQ(ReadFile(dir / "log"), "six\nseven\n");
  EXPECT_EQ(ReadFile(dir / "log.1"), "four\nfive\n");
  EXPECT_EQ(ReadFile(dir / "log.2"), "three\n");
  EXPECT_FALSE(FileExists(dir / "log.3"));
}

TEST(LogWriter, SaysHowMuchOfTheHeadIsGone) {
  TemporaryDirectory dir;
  const auto head = [&] { return ParseDroppedHead(ReadFile(DroppedHeadFile(dir / "log"))); };
  {
    LogWriter log = Open(dir / "log", 10, 3);
    for (const char* line : {"one\n", "two\n", "three\n", "four\n", "five\n"}) log.Write(line);
    EXPECT_FALSE(FileExists(DroppedHeadFile(dir / "log")));
    log.Write("six\n");
    EXPECT_EQ(head(), (DroppedHead{2, 8}));
  }
  LogWriter log = Open(dir / "log", 10, 3);  // goes on counting
  log.Write("seven\neight\n");
  EXPECT_EQ(head(), (DroppedHead{3, 14}));
  EXPECT_EQ(ParseDroppedHead(""), std::nullopt);
  EXPECT_EQ(ParseDroppedHead("1 lines"), std::nullopt);
}

TEST(LogWriter, ARemovedFileIsReplaced) {
  TemporaryDirectory dir;
  LogWriter log = Open(dir / "log", 100, 2);
  log.Write("one\n");
  ASSERT_EQ(unlink((dir / "log").c_str()), 0);
  log.Write("two\n");
  EXPECT_EQ(ReadFile(dir / "log"), "two\n");
}

TEST(LogWriter, OneWriteCanFillSeveralFiles) {
  TemporaryDirectory dir;
  Open(dir / "log", 8, 9).Write("a\nbb\nccc\ndddd\neeeee\n");
  EXPECT_EQ(ReadFile(dir / "log.3"), "a\nbb\n");
  EXPECT_EQ(ReadFile(dir / "log.2"), "ccc\n");
  EXPECT_EQ(ReadFile(dir / "log.1"), "dddd\n");
  EXPECT_EQ(ReadFile(dir / "log"), "eeeee\n");
}

TEST(LogWriter, SplitsALineThatIsLongerThanAFile) {
  TemporaryDirectory dir;
  Open(dir / "log", 4, 9).Write("abcdefghij\nk\n");
  EXPECT_EQ(ReadFile(dir / "log.3"), "abcd");
  EXPECT_EQ(ReadFile(dir / "log.2"), "efgh");
  EXPECT_EQ(ReadFile(dir / "log.1"), "ij\n");
  EXPECT_EQ(ReadFile(dir / "log"), "k\n");
}

TEST(LogWriter, ASingleFileIsTruncated) {
  TemporaryDirectory dir;
  LogWriter log = Open(dir / "log", 4, 1);
  log.Write("one\n");
  log.Write("two\n");
  EXPECT_EQ(ReadFile(dir / "log"), "two\n");
  EXPECT_FALSE(FileExists(dir / "log.1"));
  EXPECT_EQ(log.dropped_bytes(), 0);
}

TEST(LogWriter, AppendsToAnExistingFile) {
  TemporaryDirectory dir;
  Open(dir / "log", 100, 2).Write("one\n");
  Open(dir / "log", 100, 2).Write("two\n");
  EXPECT_EQ(ReadFile(dir / "log"), "one\ntwo\n");
}

TEST(LogWriter, OnlyItsUserCanRead) {
  TemporaryDirectory dir;
  Open(dir / "log", 100, 2).Write("one\n");
  struct stat info {};
  ASSERT_EQ(stat((dir / "log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(LogWriter, DropsAndCountsOutputWithoutItsDirectory) {
  TemporaryDirectory dir;
  LogWriter log = Open(dir / "later/log", 100, 2);
  log.Write("lost\n");
  EXPECT_EQ(log.dropped_bytes(), 5);
  CreateDirectories(dir / "later");
  log.Write("kept\n");
  EXPECT_EQ(log.dropped_bytes(), 5);
  EXPECT_THAT(ReadFile(dir / "later/log"), HasSubstr("5 bytes of output were lost here: No such"));
  EXPECT_TRUE(ReadFile(dir / "later/log").ends_with("\nkept\n"));
}

// While it exists, no file can grow beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(LogWriter, ReportsAGapAfterAFullDisk) {
  TemporaryDirectory dir;
  LogWriter log = Open(dir / "log", 1000, 2);
  {
    const FileSizeLimit full(10);
    log.Write("12345\n");
    log.Write("abcdefgh\n");  // four bytes of it fit
    log.Write("more\n");
    EXPECT_EQ(log.dropped_bytes(), 10);
  }
  log.Write("again\n");
  EXPECT_EQ(ReadFile(dir / "log"),
            "12345\nabcd\n[renzan: 10 bytes of output were lost here: File too large]\nagain\n");
}

TEST(LogWriter, ReportsAGapAtTheEnd) {
  TemporaryDirectory dir;
  {
    LogWriter log = Open(dir / "log", 1000, 2);
    const FileSizeLimit full(0);
    log.Write("lost\n");
  }
  EXPECT_EQ(ReadFile(dir / "log"), "[renzan: 5 bytes of output were lost here: File too large]\n");
}

}  // namespace
}  // namespace renzan::cluster
