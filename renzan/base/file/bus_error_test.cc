#include "renzan/base/file/bus_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using ::testing::ExitedWithCode;

constexpr size_t kBytes = 1 << 16;

std::byte ReadByte(const std::byte* address) {
  return *static_cast<const volatile std::byte*>(address);
}

// Each of these functions runs in its own process and ends it.

void ReadTruncatedFile(const TemporaryDirectory& dir) {
  ExitOnBusErrors();
  WriteFileAtomically(dir / "other", std::string(kBytes, 'y'));
  WriteFileAtomically(dir / "data", std::string(kBytes, 'x'));
  const MappedFile other(dir / "other"), file(dir / "data");
  { const MappedFile unmapped(dir / "data"); }
  if (::truncate((dir / "data").c_str(), 100) != 0) ::_exit(1);
  ReadByte(other.bytes().data() + kBytes - 1);
  ReadByte(file.bytes().data() + kBytes - 1);
}

// A full tmpfs cannot supply a new page, just as a failing disk cannot read one.
void ReadBeyondAFullTmpfs(const std::string& path) {
  ExitOnBusErrors();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (::ftruncate(fd, 4 * kBytes) != 0) ::_exit(1);
  const MappedFile file(path);
  for (size_t at = 0; at < file.size(); at += 4096) ReadByte(file.bytes().data() + at);
}

void ReadAnUnregisteredMap(const std::string& path) {
  ExitOnBusErrors();
  WriteFileAtomically(path, std::string(kBytes, 'x'));
  const int fd = ::open(path.c_str(), O_RDWR);
  void* const map = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  if (::ftruncate(fd, 0) != 0) ::_exit(1);
  ReadByte(static_cast<const std::byte*>(map));
}

TEST(BusErrorDeathTest, AFileTruncatedWhileMappedIsBadData) {
  TemporaryDirectory dir;
  EXPECT_EXIT(ReadTruncatedFile(dir), ExitedWithCode(static_cast<int>(ErrorCode::kData)),
              "cannot read .*/data: .* truncated");
}

TEST(BusErrorDeathTest, AFailingDiskIsAnIoError) {
  TemporaryDirectory dir;
  const std::string small = dir / "small";
  CreateDirectories(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "not permitted to mount a tmpfs here";
  EXPECT_EXIT(ReadBeyondAFullTmpfs(small + "/data"),
              ExitedWithCode(static_cast<int>(ErrorCode::kIo)), "cannot read .*/data: the disk");
  EXPECT_EQ(::umount(small.c_str()), 0);
}

TEST(BusErrorDeathTest, OtherBusErrorsStillKill) {
  TemporaryDirectory dir;
  EXPECT_EXIT(ReadAnUnregisteredMap(dir / "data"), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace renzan
