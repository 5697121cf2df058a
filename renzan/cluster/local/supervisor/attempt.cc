// The daemon's side of an attempt: everything except the supervisor itself.

#include "renzan/cluster/local/supervisor/attempt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/supervisor/attempt_cgroups.h"
#include "renzan/cluster/local/supervisor/attempt_directory.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/request_box.h"
#include "renzan/cluster/local/supervisor/supervisor_process.h"

namespace renzan::cluster::local {
namespace {

// Another process may be testing the lock at this moment.
constexpr double kLockSeconds = 1;

void CheckPlan(const AttemptPlan& plan) {
  if (plan.command.empty() || plan.command[0].empty())
    Fail(ErrorCode::kConfig, "job {} has no command", plan.job);
  if (plan.workers.empty()) Fail(ErrorCode::kConfig, "job {} has no workers", plan.job);
  if (geteuid() != 0 && plan.uid != geteuid())
    Fail(ErrorCode::kConfig,
         "job {} must run as user {}, but the daemon runs as user {}: only a daemon that runs as "
         "root can run jobs of other users",
         plan.job, plan.uid, geteuid());
}

void SetMode(const std::string& path, mode_t mode) {
  if (chmod(path.c_str(), mode) != 0)
    FailErrno(errno, fmt::format("cannot change the mode of {}", path));
}

// Private until the supervisor admits the job's user: otherwise others could place links there that
// root would follow.
void MakeAttemptDirectory(const AttemptPaths& paths) {
  CreateDirectories(paths.directory);
  struct stat info {};
  if (lstat(paths.directory.c_str(), &info) != 0)
    FailErrno(errno, fmt::format("cannot stat {}", paths.directory));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    Fail(ErrorCode::kCantCreate,
         "{} must be a directory owned by user {}, which the daemon runs as: remove it or change "
         "its owner",
         paths.directory, geteuid());
  SetMode(paths.directory, 0700);
}

// Empty if no supervisor ever held the lock.
std::string SupervisorOf(const AttemptPaths& paths) { return FileLock::OwnerOf(paths.lock); }

pid_t ParsePid(const std::string& text) {
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

// Treats a corrupt file like a missing one, so that the daemon can continue.
template <typename T>
std::optional<T> IfValid(std::optional<T> read(const AttemptPaths&), const AttemptPaths& paths) {
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
    Fail(ErrorCode::kCantCreate, "an attempt was started in {} before: use another directory",
         paths.directory);
  const std::unique_ptr<FileLock> lock = FileLock::WaitForLock(paths.lock, "", kLockSeconds);
  if (!lock) Fail(ErrorCode::kCantCreate, "an attempt is being started in {}", paths.directory);
  SetMode(paths.lock, 0600);  // anyone who can read it can hold the lock
  AttemptPlan named = plan;
  NameCgroups(named, paths.directory);
  WriteFileAtomically(paths.plan, PlanToJson(named));
  SetMode(paths.plan, 0600);
  MakeRequestBox(paths);
  MakeSpares(paths, plan);
  return SpawnSupervisor(supervisor, paths, lock->descriptor());
}

AttemptReport ReportOn(const std::string& directory) {
  ReapSupervisors();
  const AttemptPaths paths(directory);
  AttemptReport report;
  // In this order: a supervisor writes its end.json before it releases the lock.
  const bool alive = FileLock::IsHeld(paths.lock);
  const std::string supervisor = SupervisorOf(paths);
  if (alive) report.supervisor = ParsePid(supervisor);
  report.end = IfValid(ReadEnd, paths);
  if (report.end) {
    report.phase = AttemptPhase::kEnded;
  } else if (!alive) {
    report.phase = supervisor.empty() ? AttemptPhase::kNone : AttemptPhase::kLost;
  } else if (const std::optional<AttemptStart> start = IfValid(ReadStart, paths)) {
    report.phase = AttemptPhase::kRunning;
    report.worker_pids = start->worker_pids;
  } else {
    report.phase = AttemptPhase::kStarting;
  }
  return report;
}

void RequestStop(const std::string& directory, double grace_seconds) {
  CHECK_MSG(std::isfinite(grace_seconds), "a grace period must be finite");
  PostRequest(AttemptPaths(directory), {AttemptRequest::Kind::kStop, grace_seconds, ""});
}

void RequestCheckpoint(const std::string& directory) {
  PostRequest(AttemptPaths(directory), {.kind = AttemptRequest::Kind::kCheckpoint});
}

void RequestTimeLimit(const std::string& directory, int64_t timeout_ms) {
  PostRequest(AttemptPaths(directory),
              {.kind = AttemptRequest::Kind::kTimeLimit, .timeout_ms = timeout_ms});
}

void ReportNodeFailed(const std::string& directory, const std::string& node) {
  PostRequest(AttemptPaths(directory), {.kind = AttemptRequest::Kind::kNodeFailed, .node = node});
}

}  // namespace renzan::cluster::local
