#include "renzan/base/file/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

bool LocksUnsupported(int error) {
  return error == ENOLCK || error == ENOTSUP || error == EOPNOTSUPP || error == ENOSYS;
}

void WriteOwner(int fd, const std::string& path, const std::string& owner) {
  std::string line = owner;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  // In this order a reader always finds a complete first line, the old or the new one.
  const bool written =
      ::pwrite(fd, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size()) &&
      ::ftruncate(fd, static_cast<off_t>(line.size())) == 0;
  // The lock is still held; the next process just cannot report its owner.
  if (!written) LogWarning("cannot write the owner into lock file {}", path);
}

}  // namespace

std::unique_ptr<FileLock> FileLock::TryLock(const std::string& path, const std::string& owner) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int error = errno;
    Fail(ErrorCode::kCantCreate, "cannot open lock file {}: {}", path,
         std::generic_category().message(error));
  }
  std::unique_ptr<FileLock> lock(new FileLock(fd));
  if (FileSystem::Get().TryLock(fd) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return nullptr;
    if (!LocksUnsupported(error))
      Fail(ErrorCode::kIo, "cannot lock {}: {}", path, std::generic_category().message(error));
    LogWarning("cannot lock {} ({}): make sure that no other process writes to it", path,
               std::generic_category().message(error));
  }
  WriteOwner(fd, path, owner);
  return lock;
}

std::unique_ptr<FileLock> FileLock::WaitForLock(const std::string& path, const std::string& owner,
                                                double seconds, const std::function<bool()>& ends) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::unique_ptr<FileLock> lock;
  while (!(lock = TryLock(path, owner)) && Clock::now() < end && !(ends && ends()))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return lock;
}

std::unique_ptr<FileLock> FileLock::Inherit(int fd, const std::string& path,
                                            const std::string& owner) {
  struct stat ours {
  }, wanted{};
  if (::fstat(fd, &ours) != 0 || ::stat(path.c_str(), &wanted) != 0 ||
      ours.st_dev != wanted.st_dev || ours.st_ino != wanted.st_ino)
    return nullptr;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  WriteOwner(fd, path, owner);
  return std::unique_ptr<FileLock>(new FileLock(fd));
}

FileLock::~FileLock() { ::close(fd_); }

std::string FileLock::OwnerOf(const std::string& path) {
  if (!FileExists(path)) return "";
  std::string text;  // not a map: the file may shrink while it is read
  ReadInPieces(path, [&](std::span<const char> piece) { text.append(piece.data(), piece.size()); });
  return text.substr(0, text.find('\n'));
}

bool FileLock::IsHeld(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    FailErrno(errno, fmt::format("cannot open lock file {}", path));
  }
  // Shared, so that concurrent callers do not see each other.
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

}  // namespace renzan
