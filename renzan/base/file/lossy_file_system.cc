#include "renzan/base/file/lossy_file_system.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace renzan {

void LossyFileSystem::PowerOffAfter(uint64_t count) {
  const std::lock_guard lock(mutex_);
  power_off_at_ = operations_ + count;
}

void LossyFileSystem::FailWritesAfter(uint64_t bytes, int error) {
  const std::lock_guard lock(mutex_);
  room_ = bytes;
  room_error_ = error;
}

void LossyFileSystem::Heal() {
  const std::lock_guard lock(mutex_);
  room_.reset();
}

void LossyFileSystem::Crash(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  unsynced_.Crash(seed);
  open_.clear();
  power_off_at_.reset();
}

uint64_t LossyFileSystem::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

// Counts an operation; false, with errno set, if the power is off.
bool LossyFileSystem::Powered() {
  const uint64_t operation = operations_++;
  if (!power_off_at_ || operation < *power_off_at_) return true;
  errno = EIO;
  return false;
}

// Reduces `*bytes` to what still fits on the disk; false, with errno set, if that is nothing.
bool LossyFileSystem::HasRoom(size_t* bytes) {
  if (!room_) return true;
  *bytes = static_cast<size_t>(std::min<uint64_t>(*bytes, *room_));
  if (*bytes > 0) return true;
  errno = room_error_;
  return false;
}

int LossyFileSystem::OpenForWriting(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  const Unsynced::NodePtr before = unsynced_.Load(path);
  const int fd = FileSystem::OpenForWriting(path);
  if (fd < 0) return -1;
  const Unsynced::NodePtr file = unsynced_.Opened(path, before);
  if (file != nullptr) open_[fd] = {file, 0};
  return fd;
}

ssize_t LossyFileSystem::Write(int fd, const void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!Powered() || !HasRoom(&bytes)) return -1;
  const ssize_t wrote = FileSystem::Write(fd, data, bytes);
  if (wrote < 0) return -1;
  if (room_) *room_ -= static_cast<uint64_t>(wrote);
  const auto file = open_.find(fd);
  if (file != open_.end()) {
    unsynced_.Wrote(file->second.node, file->second.position, data, static_cast<size_t>(wrote));
    file->second.position += static_cast<uint64_t>(wrote);
  }
  return wrote;
}

ssize_t LossyFileSystem::WriteAt(int fd, const void* data, size_t bytes, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if (!Powered() || !HasRoom(&bytes)) return -1;
  const ssize_t wrote = FileSystem::WriteAt(fd, data, bytes, offset);
  if (wrote < 0) return -1;
  if (room_) *room_ -= static_cast<uint64_t>(wrote);
  const auto file = open_.find(fd);
  if (file != open_.end())
    unsynced_.Wrote(file->second.node, offset, data, static_cast<size_t>(wrote));
  return wrote;
}

// Write-back without waiting guarantees nothing.
int LossyFileSystem::StartWriteBack(int, uint64_t, uint64_t) {
  const std::lock_guard lock(mutex_);
  return Powered() ? 0 : -1;
}

// A real fsync would only cost time.
int LossyFileSystem::Sync(int fd) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  const auto file = open_.find(fd);
  if (file == open_.end()) return FileSystem::Sync(fd);
  unsynced_.Synced(file->second.node);
  return 0;
}

int LossyFileSystem::Close(int fd) {
  const std::lock_guard lock(mutex_);
  open_.erase(fd);
  const int result = FileSystem::Close(fd);
  return Powered() ? result : -1;
}

int LossyFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  namespace fs = std::filesystem;
  if (fs::absolute(from).lexically_normal().parent_path() !=
      fs::absolute(to).lexically_normal().parent_path()) {
    errno = EXDEV;
    return -1;
  }
  unsynced_.Load(from);
  const Unsynced::NodePtr before = unsynced_.Load(to);
  if (FileSystem::Rename(from, to) != 0) return -1;
  unsynced_.Renamed(from, to, before);
  return 0;
}

int LossyFileSystem::RenameToNew(const std::string& from, const std::string& to) {
  struct stat there {};
  if (::lstat(to.c_str(), &there) != 0) return Rename(from, to);
  errno = EEXIST;
  return -1;
}

int LossyFileSystem::Unlink(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  const Unsynced::NodePtr before = unsynced_.Load(path);
  if (FileSystem::Unlink(path) != 0) return -1;
  unsynced_.Removed(path, before);
  return 0;
}

int LossyFileSystem::MakeDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  if (FileSystem::MakeDirectory(path) != 0) return -1;
  unsynced_.MadeDirectory(path);
  return 0;
}

int LossyFileSystem::RemoveDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  const Unsynced::NodePtr before = unsynced_.Load(path);
  if (FileSystem::RemoveDirectory(path) != 0) return -1;
  unsynced_.Removed(path, before);
  return 0;
}

int LossyFileSystem::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!Powered()) return -1;
  if (unsynced_.Load(path) == nullptr) {
    errno = ENOENT;
    return -1;
  }
  unsynced_.SyncedDirectory(path);
  return 0;
}

}  // namespace renzan
