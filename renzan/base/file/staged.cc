#include "renzan/base/file/staged.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/file/sync_directory.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

// Two processes that begin at once may each remove what the other has just made.
constexpr int kAttempts = 100;

constexpr int kMostLinks = 40;  // as the kernel's

// Without a '/' at its end.
std::string Named(const std::string& path) {
  const fs::path given(path);
  return (given.has_filename() ? given : given.parent_path()).string();
}

std::string PartialPath(const std::string& path) {
  const fs::path target(path);
  return (target.parent_path() / fmt::format(".{}.partial", target.filename().string())).string();
}

bool IsAt(int fd, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Whether another process holds the lock. False on file systems without locks.
bool IsLocked(int fd) {
  return FileSystem::Get().TryLock(fd) != 0 && (errno == EWOULDBLOCK || errno == EAGAIN);
}

void RemoveLeftOver(const std::string& path) {
  if (FileSystem::Get().RemoveTree(path) == 0) return;
  Fail(ErrorCode::kCantCreate,
       "cannot remove {}, which an interrupted writer left behind: {}: remove it", path,
       std::strerror(errno));
}

// Nothing is there, or an empty directory.
bool IsFree(const std::string& path) {
  std::error_code ignored;
  return !fs::exists(path, ignored) ||
         (fs::is_directory(path, ignored) && fs::is_empty(path, ignored));
}

[[noreturn]] void FailExists(const std::string& path) {
  Fail(ErrorCode::kCantCreate, "{} already exists: choose another name or remove it", path);
}

std::string CheckedDirectory(const std::string& given) {
  const std::string path = Named(given);
  if (path.empty()) Fail(ErrorCode::kCantCreate, "the name of the output is empty: give it one");
  if (!IsFree(path)) FailExists(path);
  CreateDirectories(ParentDirectory(path));
  return path;
}

// Where a symbolic link leads, if `path` is one; nothing need exist there.
std::string FollowedPath(const std::string& path) {
  if (path.empty()) Fail(ErrorCode::kCantCreate, "the name of the output is empty: give it one");
  fs::path end(path);
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(end, error); ++i)
    end = end.parent_path() / fs::read_symlink(end, error);
  return end.string();
}

// Checks `path` itself, not FollowedPath(): a link in /proc/self/fd (/dev/stdout leads to one) may
// read as a name that does not exist, such as "pipe:[4711]".
bool IsSpecial(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// Whether `path` leads through a name of the kernel's, as /dev/stdout does: what is there cannot be
// removed or replaced by its name. /dev/shm holds files.
bool LeadsThroughKernel(const std::string& path) {
  std::error_code error;
  fs::path end = fs::absolute(path, error).lexically_normal();
  for (int i = 0; i < kMostLinks; ++i) {
    const std::string name = end.string();
    if (name.starts_with("/proc/") || (name.starts_with("/dev/") && !name.starts_with("/dev/shm/")))
      return true;
    if (!fs::is_symlink(end, error)) return false;
    end = (end.parent_path() / fs::read_symlink(end, error)).lexically_normal();
  }
  return false;
}

std::string CheckedFile(const std::string& path) {
  std::error_code ignored;
  if (IsSpecial(path) || fs::is_directory(path, ignored))
    Fail(ErrorCode::kCantCreate, "cannot write {}: it is a {}: choose another name", path,
         IsSpecial(path) ? "device or a pipe" : "directory");
  const std::string end = FollowedPath(path), parent = ParentDirectory(end);
  // Not written to directly, as a pipe is: that would cut off what is there.
  if (fs::exists(end, ignored) && LeadsThroughKernel(path))
    Fail(ErrorCode::kCantCreate,
         "cannot write {}: it leads to a file that is there already: choose the name of a new one",
         path);
  if (fs::exists(end, ignored)) FailExists(path);
  if (!fs::is_directory(parent, ignored))
    Fail(ErrorCode::kCantCreate, "cannot create {}: {} {}", path, parent,
         fs::exists(parent, ignored) ? "is not a directory"
                                     : "does not exist: create this directory first");
  return end;
}

}  // namespace

StagingClaim::StagingClaim(Kind kind, const std::string& path, const std::string& output)
    : kind_(kind), path_(path), output_(output) {
  for (int attempt = 0; attempt < kAttempts; ++attempt)
    if (TryToTake()) return;
  Fail(ErrorCode::kCantCreate, "cannot create {}: other processes keep removing {}", output_,
       path_);
}

bool StagingClaim::TryToTake() {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int left = ::open(path_.c_str(), flags);
  if (left >= 0) {
    const bool is_locked = IsLocked(left), is_there = IsAt(left, path_);
    if (!is_locked && is_there) RemoveLeftOver(path_);  // removed while we hold the lock
    ::close(left);
    if (is_locked)
      Fail(ErrorCode::kCantCreate,
           "another process is writing {}: wait for it, or choose another name", output_);
    if (!is_there) return false;
  } else if (const int error = errno; error != ENOENT) {
    struct stat there {};
    if (::lstat(path_.c_str(), &there) != 0)
      Fail(ErrorCode::kCantCreate, "cannot create {}: {}", output_, std::strerror(error));
    RemoveLeftOver(path_);
  }
  int made = 0;
  if (kind_ == Kind::kDirectory) {
    made = FileSystem::Get().MakeDirectory(path_);
  } else if ((made = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0) {
    ::close(made);
  }
  if (made < 0 && errno == EEXIST) return false;
  if (made < 0) Fail(ErrorCode::kCantCreate, "cannot create {}: {}", output_, std::strerror(errno));
  fd_ = ::open(path_.c_str(), flags);
  if (fd_ >= 0 && !IsLocked(fd_) && IsAt(fd_, path_)) return true;
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  return false;
}

StagingClaim::~StagingClaim() {
  if (fd_ >= 0) ::close(fd_);
}

void StagingClaim::RemoveAll() {
  if (IsAt(fd_, path_)) FileSystem::Get().RemoveTree(path_);
}

std::string StagedDirectory::StagingPath(const std::string& path) {
  return PartialPath(Named(path));
}

StagedDirectory::StagedDirectory(const std::string& path)
    : path_(CheckedDirectory(path)),
      staging_(PartialPath(path_)),
      claim_(StagingClaim::Kind::kDirectory, staging_, path_) {
  if (IsFree(path_)) return;
  // By another process, between the check and the claim.
  claim_.RemoveAll();
  FailExists(path_);
}

StagedDirectory::~StagedDirectory() {
  if (!committed_) claim_.RemoveAll();
}

void StagedDirectory::Commit() {
  SyncDirectoriesBelow(staging_);
  SyncDirectory(staging_);
  if (FileSystem::Get().Rename(staging_, path_) != 0) {
    // By now. (An empty directory is replaced.)
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) FailExists(path_);
    FailErrno(errno, fmt::format("cannot rename {} to {}", staging_, path_));
  }
  committed_ = true;
  SyncDirectory(ParentDirectory(path_));
}

StagedFile::StagedFile(const std::string& path)
    : path_(CheckedFile(path)),
      staging_(PartialPath(path_)),
      claim_(StagingClaim::Kind::kFile, staging_, path) {
  if (std::error_code ignored; !fs::exists(path_, ignored)) return;
  // By another process, between the check and the claim.
  claim_.RemoveAll();
  FailExists(path);
}

StagedFile::~StagedFile() {
  if (!committed_) claim_.RemoveAll();
}

void StagedFile::Commit() {
  if (FileSystem::Get().RenameToNew(staging_, path_) != 0) {
    if (errno == EEXIST) FailExists(path_);  // by now
    FailErrno(errno, fmt::format("cannot rename {} to {}", staging_, path_));
  }
  committed_ = true;
  SyncDirectory(ParentDirectory(path_));
}

void CheckOutputFile(const std::string& path) {
  if (!IsSpecial(path)) CheckedFile(path);
}

void WriteOutputFile(const std::string& path, std::string_view content) {
  if (IsSpecial(path)) {
    FileWriter writer(path);
    writer.Write(content);
    return writer.Close();
  }
  StagedFile file(path);
  FileWriter writer(file.staging());
  writer.Write(content);
  writer.Close();
  file.Commit();
}

}  // namespace renzan
