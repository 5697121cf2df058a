#include "renzan/base/file/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

namespace renzan {
namespace {

namespace fs = std::filesystem;

FileSystem& Machine() {
  static FileSystem machine;
  return machine;
}

std::atomic<FileSystem*> installed{nullptr};

}  // namespace

FileSystem& FileSystem::Get() {
  FileSystem* const other = installed.load(std::memory_order_acquire);
  return other != nullptr ? *other : Machine();
}

int FileSystem::OpenForWriting(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

int FileSystem::OpenForReading(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

int FileSystem::Stat(const std::string& path, struct stat* info) {
  return ::stat(path.c_str(), info);
}

ssize_t FileSystem::Write(int fd, const void* data, size_t bytes) {
  return ::write(fd, data, bytes);
}

ssize_t FileSystem::WriteAt(int fd, const void* data, size_t bytes, uint64_t offset) {
  return ::pwrite(fd, data, bytes, static_cast<off_t>(offset));
}

ssize_t FileSystem::ReadAt(int fd, const std::string&, void* data, size_t bytes, uint64_t offset) {
  return ::pread(fd, data, bytes, static_cast<off_t>(offset));
}

ssize_t FileSystem::ReadFully(int fd, const std::string& path, void* data, size_t bytes,
                              uint64_t offset) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ReadAt(fd, path, static_cast<char*>(data) + done, bytes - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

int FileSystem::StartWriteBack(int fd, uint64_t offset, uint64_t bytes) {
  return ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                           SYNC_FILE_RANGE_WRITE);
}

int FileSystem::Sync(int fd) { return ::fsync(fd); }

int FileSystem::Close(int fd) { return ::close(fd); }

int FileSystem::Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}

int FileSystem::RenameToNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // NFS and others have no such rename. Nor does a link replace anything.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());  // what is left has only a second name
    return 0;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return -1;
  // Nor links: what appears between these two calls is replaced.
  struct stat there {};
  if (::lstat(to.c_str(), &there) == 0) {
    errno = EEXIST;
    return -1;
  }
  return std::rename(from.c_str(), to.c_str());
}

int FileSystem::Unlink(const std::string& path) { return ::unlink(path.c_str()); }

int FileSystem::MakeDirectory(const std::string& path) { return ::mkdir(path.c_str(), 0777); }

int FileSystem::RemoveDirectory(const std::string& path) { return ::rmdir(path.c_str()); }

int FileSystem::SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  errno = error;
  return result;
}

int FileSystem::TryLock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB); }

int FileSystem::RemoveTree(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return 0;
  // Another process may be removing the same tree: an entry that no longer exists is fine.
  if (type != fs::file_type::directory) return Unlink(path) == 0 || errno == ENOENT ? 0 : -1;

  std::vector<std::string> entries;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path().string());
  if (error) {
    errno = error.value();
    return -1;
  }
  std::sort(entries.begin(), entries.end());
  for (const std::string& entry : entries)
    if (RemoveTree(entry) != 0) return -1;
  return RemoveDirectory(path) == 0 || errno == ENOENT ? 0 : -1;
}

ScopedFileSystem::ScopedFileSystem(FileSystem& file_system)
    : previous_(installed.exchange(&file_system, std::memory_order_acq_rel)) {}

ScopedFileSystem::~ScopedFileSystem() { installed.store(previous_, std::memory_order_release); }

}  // namespace renzan
