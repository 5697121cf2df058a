#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/file/lossy_file_system.h"
#include "renzan/base/file/staged.h"

namespace renzan {
namespace {

// The message of the kIo Error that `function` throws.
template <typename Function>
std::string IoErrorOf(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
    return error.what();
  }
  return "(no error)";
}

TEST(FileWriter, AFullDiskIsAnErrorThatNamesTheFileAndLeavesNoFile) {
  TemporaryDirectory dir;
  LossyFileSystem disk;
  const ScopedFileSystem scope(disk);
  disk.FailWritesAfter(3000000, ENOSPC);
  {
    FileWriter writer(dir / "x");
    const std::string text(2000000, 'x');
    writer.Write(text);
    EXPECT_EQ(IoErrorOf([&] { writer.Write(text); }),
              "cannot write " + dir / "x" + ": No space left on device");
    // Even when there is room again: part of the text is missing.
    disk.Heal();
    EXPECT_NE(IoErrorOf([&] { writer.Write("more"); }).find("an earlier write"), std::string::npos);
    EXPECT_NE(IoErrorOf([&] { writer.WriteAt(0, "m", 1); }).find("earlier"), std::string::npos);
    EXPECT_NE(IoErrorOf([&] { writer.Close(); }).find("earlier"), std::string::npos);
    EXPECT_TRUE(FileExists(dir / "x"));
  }
  EXPECT_FALSE(FileExists(dir / "x"));
}

TEST(FileWriter, AFullDiskKeepsTheOldContentOfAnAtomicallyWrittenFile) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "x", "old");
  LossyFileSystem disk;
  const ScopedFileSystem scope(disk);
  disk.FailWritesAfter(2, ENOSPC);
  IoErrorOf([&] { WriteFileAtomically(dir / "x", "new"); });
  EXPECT_EQ(ReadFile(dir / "x"), "old");
  const std::filesystem::directory_iterator files(dir.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

// Fails the calls it is told to fail, and records the others.
class Scripted : public FileSystem {
 public:
  int sync_error = 0, close_error = 0, sync_directory_error = 0, unlink_error = 0;
  size_t longest_write = SIZE_MAX;
  std::vector<std::pair<uint64_t, uint64_t>> write_backs;  // offset, bytes
  std::vector<std::pair<const void*, size_t>> writes;

  ssize_t Write(int fd, const void* data, size_t bytes) override {
    writes.emplace_back(data, bytes);
    return FileSystem::Write(fd, data, std::min(bytes, longest_write));
  }
  ssize_t WriteAt(int fd, const void* data, size_t bytes, uint64_t offset) override {
    return FileSystem::WriteAt(fd, data, std::min(bytes, longest_write), offset);
  }
  int StartWriteBack(int fd, uint64_t offset, uint64_t bytes) override {
    write_backs.emplace_back(offset, bytes);
    return FileSystem::StartWriteBack(fd, offset, bytes);
  }
  // Only once, as the kernel reports a lost page.
  int Sync(int fd) override { return FailsOnce(&sync_error) ? -1 : FileSystem::Sync(fd); }
  int Close(int fd) override {
    const int result = FileSystem::Close(fd);
    return FailsOnce(&close_error) ? -1 : result;
  }
  int SyncDirectory(const std::string& path) override {
    return FailsOnce(&sync_directory_error) ? -1 : FileSystem::SyncDirectory(path);
  }
  int Unlink(const std::string& path) override {
    return FailsOnce(&unlink_error) ? -1 : FileSystem::Unlink(path);
  }

 private:
  static bool FailsOnce(int* error) {
    errno = std::exchange(*error, 0);
    return errno != 0;
  }
};

TEST(FileWriter, AFailedSyncIsAPermanentError) {
  TemporaryDirectory dir;
  Scripted disk;
  const ScopedFileSystem scope(disk);
  {
    FileWriter writer(dir / "x");
    writer.Write("abc");
    disk.sync_error = EIO;
    EXPECT_NE(IoErrorOf([&] { writer.Close(); }).find("Input/output error"), std::string::npos);
    EXPECT_NE(IoErrorOf([&] { writer.Close(); }).find("earlier"), std::string::npos);
  }
  EXPECT_FALSE(FileExists(dir / "x"));
  disk.sync_error = EINVAL;  // expected of a pipe, an error for a file
  EXPECT_NE(IoErrorOf([&] { WriteFileAtomically(dir / "x", "abc"); }), "(no error)");
  EXPECT_FALSE(FileExists(dir / "x"));
  disk.sync_error = EINTR;
  WriteFileAtomically(dir / "x", "abc");
  EXPECT_EQ(ReadFile(dir / "x"), "abc");
}

TEST(FileWriter, AFailedCloseIsAnErrorAndLeavesNoFile) {
  TemporaryDirectory dir;
  Scripted disk;
  const ScopedFileSystem scope(disk);
  disk.close_error = EDQUOT;
  EXPECT_NE(IoErrorOf([&] {
              FileWriter writer(dir / "x");
              writer.Close();
            }).find("quota"),
            std::string::npos);
  EXPECT_FALSE(FileExists(dir / "x"));
}

TEST(FileWriter, AFailedDirectorySyncIsAnErrorUnlessUnsupported) {
  TemporaryDirectory dir;
  Scripted disk;
  const ScopedFileSystem scope(disk);
  for (const int error : {EIO, EACCES, ENOSPC}) {
    disk.sync_directory_error = error;
    EXPECT_NE(IoErrorOf([&] { WriteFileAtomically(dir / "x", "abc"); }).find(dir.path()),
              std::string::npos);
    disk.sync_directory_error = error;
    EXPECT_NE(IoErrorOf([&] { CreateDirectories(fmt::format("{}/{}", dir.path(), error)); }),
              "(no error)");
  }
  for (const int error : {EINVAL, ENOTSUP, EROFS, EBADF, EINTR}) {
    disk.sync_directory_error = error;
    WriteFileAtomically(dir / "x", "abc");
  }
}

TEST(FileWriter, WriteBackStartsAfterEvery8MiB) {
  TemporaryDirectory dir;
  Scripted disk;
  const ScopedFileSystem scope(disk);
  const uint64_t mib = 1 << 20;
  const std::string large(20 * mib, 'x');
  FileWriter writer(dir / "x");
  writer.Write("head");
  writer.Write(large);
  EXPECT_EQ(disk.write_backs,
            (std::vector<std::pair<uint64_t, uint64_t>>{{0, 8 * mib}, {8 * mib, 8 * mib}}));
  // Written directly from the caller's memory.
  ASSERT_EQ(disk.writes.size(), 4u);
  EXPECT_EQ(disk.writes[1].first, large.data());
  for (uint64_t i = 0; i < 8; ++i) writer.Write(std::string(mib / 2, 'y'));
  writer.Close();
  EXPECT_EQ(disk.write_backs.size(), 3u);
  EXPECT_EQ(ReadFile(dir / "x"), "head" + large + std::string(4 * mib, 'y'));
}

TEST(FileWriter, ShortWritesAreContinued) {
  TemporaryDirectory dir;
  Scripted disk;
  const ScopedFileSystem scope(disk);
  disk.longest_write = 3;
  FileWriter writer(dir / "x");
  writer.Write("0123456789");
  writer.WriteAt(2, "abcdefg", 7);
  writer.Close();
  EXPECT_EQ(ReadFile(dir / "x"), "01abcdefg9");
  disk.longest_write = 0;
  FileWriter stuck(dir / "y");
  EXPECT_NE(IoErrorOf([&] {
              stuck.Write("0");
              stuck.Close();
            }),
            "(no error)");
}

TEST(StagedDirectory, RejectsATargetItCannotReplace) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "file", "");
  EXPECT_THROW(StagedDirectory(dir / "file"), Error);

  CreateDirectories(dir / ".out.partial");
  WriteFileAtomically(dir / ".out.partial/stale", "x");
  Scripted disk;
  const ScopedFileSystem scope(disk);
  disk.unlink_error = EPERM;
  try {
    StagedDirectory staged(dir / "out");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_NE(
        std::string(error.what()).find(".out.partial, which an interrupted writer left behind"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace renzan
