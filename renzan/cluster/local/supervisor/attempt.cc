// The daemon's side of an attempt: everything but the supervisor itself.

#include "renzan/cluster/local/supervisor/attempt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/base/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/request_box.h"
#include "renzan/cluster/local/supervisor/supervisor_process.h"

namespace renzan::cluster::local {
namespace {

// For someone who looks at the lock at just that moment.
constexpr double kLockSeconds = 1;

void CheckPlan(const AttemptPlan& plan) {
  if (plan.command.empty() || plan.command[0].empty())
    Fail(ErrorCode::kConfig, "job {} has no command", plan.job);
  if (plan.workers.empty()) Fail(ErrorCode::kConfig, "job {} has no workers", plan.job);
  if (geteuid() != 0 && plan.uid != geteuid())
    Fail(ErrorCode::kConfig,
         "job {} is to run as user {}, but the daemon runs as user {}: only a daemon that runs as "
         "root can run the jobs of others",
         plan.job, plan.uid, geteuid());
}

void SetMode(const std::string& path, mode_t mode) {
  if (chmod(path.c_str(), mode) != 0)
    FailErrno(errno, fmt::format("cannot change the mode of {}", path));
}

// Ours alone until the supervisor lets the job's user in: whoever could put files there first could
// make root follow a link.
void MakeAttemptDirectory(const AttemptPaths& paths) {
  CreateDirectories(paths.directory);
  struct stat info {};
  if (lstat(paths.directory.c_str(), &info) != 0)
    FailErrno(errno, fmt::format("cannot look at {}", paths.directory));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    Fail(ErrorCode::kCantCreate,
         "{} must be a directory of user {}, who runs the daemon: remove it or give it to them",
         paths.directory, geteuid());
  SetMode(paths.directory, 0700);
}

// Empty unless a supervisor has ever had the lock.
std::string SupervisorOf(const AttemptPaths& paths) { return FileLock::OwnerOf(paths.lock); }

pid_t ParsePid(const std::string& text) {
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

// Nothing for a file that is corrupt: it says as little as one that is not there, and whoever asks
// must be able to go on.
template <typename T>
std::optional<T> IfWhole(std::optional<T> read(const AttemptPaths&), const AttemptPaths& paths) {
  try {
    return read(paths);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    LogWarning("{}", error.what());
    return std::nullopt;
  }
}

}  // namespace

pid_t StartAttempt(const std::string& supervisor, const std::string& directory,
                   const AttemptPlan& plan) {
  CheckPlan(plan);
  const AttemptPaths paths(directory);
  MakeAttemptDirectory(paths);
  if (!SupervisorOf(paths).empty())
    Fail(ErrorCode::kCantCreate, "an attempt has been started in {} before: give this one another",
         paths.directory);
  const std::unique_ptr<FileLock> lock = FileLock::WaitForLock(paths.lock, "", kLockSeconds);
  if (!lock) Fail(ErrorCode::kCantCreate, "an attempt is being started in {}", paths.directory);
  SetMode(paths.lock, 0600);  // a lock can be held by whoever can read it
  WriteFileAtomically(paths.plan, PlanToJson(plan));
  SetMode(paths.plan, 0600);
  MakeRequestBox(paths);
  return SpawnSupervisor(supervisor, paths, lock->descriptor());
}

AttemptReport ReportOn(const std::string& directory) {
  ReapSupervisors();
  const AttemptPaths paths(directory);
  AttemptReport report;
  // In this order: a supervisor that ends meanwhile has left its end.json before it lets the lock
  // go.
  const bool lives = FileLock::IsHeld(paths.lock);
  const std::string supervisor = SupervisorOf(paths);
  if (lives) report.supervisor = ParsePid(supervisor);
  report.end = IfWhole(ReadEnd, paths);
  if (report.end) {
    report.phase = AttemptPhase::kEnded;
  } else if (!lives) {
    report.phase = supervisor.empty() ? AttemptPhase::kNone : AttemptPhase::kLost;
  } else if (const std::optional<AttemptStart> start = IfWhole(ReadStart, paths)) {
    report.phase = AttemptPhase::kRunning;
    report.worker_pids = start->worker_pids;
  } else {
    report.phase = AttemptPhase::kStarting;
  }
  return report;
}

void RequestStop(const std::string& directory, double grace_seconds) {
  CHECK_MSG(std::isfinite(grace_seconds), "a grace must be finite");
  PostRequest(AttemptPaths(directory), {AttemptRequest::Kind::kStop, grace_seconds, ""});
}

void RequestCheckpoint(const std::string& directory) {
  PostRequest(AttemptPaths(directory), {AttemptRequest::Kind::kCheckpoint, 0, ""});
}

void ReportNodeFailed(const std::string& directory, const std::string& node) {
  PostRequest(AttemptPaths(directory), {AttemptRequest::Kind::kNodeFailed, 0, node});
}

}  // namespace renzan::cluster::local
