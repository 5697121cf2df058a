#include "renzan/cluster/local/supervisor/attempt_directory.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/supervisor/spare_file.h"

namespace renzan::cluster::local {
namespace {

// The daemon may be testing the lock at this moment.
constexpr double kNewLockSeconds = 1;

void MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    FailErrno(errno, fmt::format("cannot create {}", path));
}

bool IsTheSame(int fd, const std::string& path) {
  struct stat ours {
  }, there{};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

}  // namespace

void GrantAccess(const AttemptPaths& paths, const AttemptPlan& plan) {
  if (plan.uid == geteuid()) return;
  const bool done = chown(paths.directory.c_str(), static_cast<uid_t>(-1), plan.gid) == 0 &&
                    chmod(paths.directory.c_str(), 0750) == 0;
  if (!done)
    FailErrno(errno, fmt::format("cannot give user {} access to {}", plan.uid, paths.directory));
}

void MakeSpares(const AttemptPaths& paths, const AttemptPlan& plan) {
  constexpr size_t kBytes = 4096, kBytesPerWorker = 80;
  MakeSpareRequests(paths);
  MakeSpare(paths.spare_end, kBytes + kBytesPerWorker * plan.workers.size());
}

void RemoveSpares(const AttemptPaths& paths) {
  RemoveSpareRequests(paths);
  unlink(paths.spare_end.c_str());
}

AttemptDirectory::AttemptDirectory(const AttemptPaths& paths, const AttemptPlan& plan,
                                   std::unique_ptr<FileLock> lock)
    : paths_(paths),
      plan_(plan),
      lock_(std::move(lock)),
      inbox_(std::make_unique<RequestInbox>(paths)),
      watch_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  Watch();
}

void AttemptDirectory::Watch() {
  inotify_add_watch(watch_.get(), paths_.directory.c_str(),
                    IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF);
}

bool AttemptDirectory::IsWhole() const {
  return IsTheSame(lock_->descriptor(), paths_.lock) && FileExists(paths_.plan) &&
         FileExists(paths_.requests) && FileExists(paths_.wake);
}

bool AttemptDirectory::TakeRemovals() {
  std::array<char, 4096> events;
  bool any = false;
  while (read(watch_.get(), events.data(), events.size()) > 0) any = true;
  return any;
}

bool AttemptDirectory::RestoreIfRemoved() {
  if (IsWhole()) return false;
  LogWarning("files of {} were removed: putting them back", paths_.directory);
  // The job's directory, too; but nobody needs the result if all jobs were removed.
  MakeDirectory(std::filesystem::path(paths_.directory).parent_path().string());
  MakeDirectory(paths_.directory);
  if (!IsTheSame(lock_->descriptor(), paths_.lock)) {
    std::unique_ptr<FileLock> lock =
        FileLock::WaitForLock(paths_.lock, std::to_string(getpid()), kNewLockSeconds);
    if (!lock) Fail(ErrorCode::kCantCreate, "another process has locked {}", paths_.lock);
    if (chmod(paths_.lock.c_str(), 0600) != 0)
      FailErrno(errno, fmt::format("cannot change the mode of {}", paths_.lock));
    lock_ = std::move(lock);
  }
  WriteFileAtomically(paths_.plan, PlanToJson(plan_));
  inbox_.reset();  // removes the pipe, if it is there
  MakeRequestBox(paths_);
  inbox_ = std::make_unique<RequestInbox>(paths_);
  GrantAccess(paths_, plan_);
  Watch();
  try {
    MakeSpares(paths_, plan_);
  } catch (const Error& error) {
    LogWarning("{}", error.what());  // the job can be stopped while there is room
  }
  return true;
}

}  // namespace renzan::cluster::local
