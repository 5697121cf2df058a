#include "renzan/cli/machine/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/cli/text/amounts_text.h"

namespace renzan {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr double kSlowBytesPerSecond = 50e6;  // a checkpoint of 1 GB takes 20 s

// An unlinked file, which disappears with its descriptor however the program ends.
int OpenNameless(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string name = directory + "/.renzan-doctor-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Runs `transfer(buffer, bytes)` for every block; returns 0 or errno.
template <typename Transfer>
int ForEachBlock(std::vector<char>& block, const Transfer& transfer) {
  for (int64_t done = 0; done < kBytes;) {
    const ssize_t bytes = transfer(block.data(), std::min(kBlock, kBytes - done));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return bytes < 0 ? errno : EIO;
    done += bytes;
  }
  return 0;
}

// Seconds for each direction.
struct Times {
  int error = 0;
  double write = 0, read = 0;
};

Times Measure(int fd, const Clock& clock) {
  // Incompressible bytes, because some disks and file systems compress.
  std::vector<char> block(kBlock);
  for (int64_t i = 0; i < kBlock; i += 16) {
    const Philox::Block random = Philox::Draw(0, static_cast<uint64_t>(i));
    std::memcpy(block.data() + i, random.data(), sizeof random);
  }
  Times times;
  const double start = clock.MonotonicSeconds();
  times.error =
      ForEachBlock(block, [fd](char* data, int64_t bytes) { return ::write(fd, data, bytes); });
  if (times.error == 0 && ::fdatasync(fd) != 0) times.error = errno;
  times.write = clock.MonotonicSeconds() - start;
  if (times.error != 0) return times;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  if (::lseek(fd, 0, SEEK_SET) != 0) times.error = errno;
  const double middle = clock.MonotonicSeconds();
  if (times.error == 0)
    times.error =
        ForEachBlock(block, [fd](char* data, int64_t bytes) { return ::read(fd, data, bytes); });
  times.read = clock.MonotonicSeconds() - middle;
  return times;
}

std::string RateText(double seconds) {
  return fmt::format("{:.0f} MB/s", static_cast<double>(kBytes) / std::max(seconds, 1e-6) / 1e6);
}

}  // namespace

Finding FindDisk(const std::string& directory, const Clock& clock) {
  Finding finding{.name = "disk"};
  const int fd = OpenNameless(directory);
  Times times{.error = fd < 0 ? errno : 0};
  if (fd >= 0) {
    times = Measure(fd, clock);
    ::close(fd);
  }
  if (times.error != 0) {
    finding.state = Finding::State::kMissing;
    finding.here = fmt::format("cannot write {} in {}: {}", MebibytesText(kBytes >> 20), directory,
                               std::strerror(times.error));
    finding.advice = "check the directory of your runs (--dir), or free some space there";
    return finding;
  }
  struct statvfs room {};
  ::statvfs(directory.c_str(), &room);
  finding.here = fmt::format(
      "{} written and synced, {} read, {} free in {}", RateText(times.write), RateText(times.read),
      MebibytesText(static_cast<int64_t>(room.f_bavail * room.f_frsize >> 20)), directory);
  if (static_cast<double>(kBytes) / kSlowBytesPerSecond < times.write) {
    finding.state = Finding::State::kLimited;
    finding.advice = "put checkpoints on a faster disk (--run-dir, RENZAN_CHECKPOINT_DIR)";
  }
  return finding;
}

}  // namespace renzan
