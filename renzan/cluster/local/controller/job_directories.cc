#include "renzan/cluster/local/controller/job_directories.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::local {
namespace {

void ChangeMode(const std::string& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0) FailErrno(errno, "cannot change the mode of " + path);
}

// Its parent is the daemon's, so no other user can have put anything in its place. Not synced.
void CreateForUser(const std::string& path, uid_t uid, gid_t gid) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    FailErrno(errno, "cannot create " + path);
  ChangeMode(path, 0700);
  if (::geteuid() == 0 && ::lchown(path.c_str(), uid, gid) != 0)
    FailErrno(errno, "cannot change the owner of " + path);
}

// In the job's directory, for its user to write to.
constexpr const char* kUsersDirectories[] = {"run", "checkpoints", "artifacts"};
constexpr const char* kStopNotice = "stop.json";  // of the supervisor, in "run"
// In an attempt's directory, read only until the job has ended.
constexpr const char* kWorkingFiles[] = {"plan.json", "started.json", "end.json", "lock", "wake"};

// Not through a link that the job's user may have put there.
Descriptor OpenDirectory(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void TrimAttempt(const std::string& path) {
  const Descriptor attempt = OpenDirectory(path);
  if (!attempt) return;
  for (const char* name : kWorkingFiles) ::unlinkat(attempt.get(), name, 0);
  struct stat log {};
  if (::fstatat(attempt.get(), "supervisor.log", &log, AT_SYMLINK_NOFOLLOW) == 0 &&
      log.st_size == 0)
    ::unlinkat(attempt.get(), "supervisor.log", 0);
  const Descriptor requests = OpenDirectory(path + "/requests");
  if (!requests) return;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path + "/requests", error), end; !error && at != end;
       at.increment(error))
    ::unlinkat(requests.get(), at->path().filename().c_str(), 0);
  ::unlinkat(attempt.get(), "requests", AT_REMOVEDIR);
}

// Whether the job has left a file there, as far as can be seen.
bool HasFiles(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error))
    if (at->path().filename() != kStopNotice) return true;
  return static_cast<bool>(error);
}

}  // namespace

std::string JobDirectories::Of(JobId job) const { return fmt::format("{}/{}", root_, job); }

std::string JobDirectories::OfAttempt(JobId job, int attempt) const {
  return fmt::format("{}/attempt-{}", Of(job), attempt);
}

void JobDirectories::Create(const JobRecord& job,
                            const std::optional<std::string>& manifest) const {
  const std::string directory = Of(job.id);
  CreateDirectories(directory);
  // The environment in the manifest may hold secrets: other users cannot enter the directory before
  // the file's mode is set.
  if (manifest) ChangeMode(directory, 0700);
  for (const char* name : kUsersDirectories)
    CreateForUser(directory + "/" + name, job.uid, job.gid);
  if (manifest) {
    const std::string path = directory + "/manifest.json";
    // Syncs the directory and, with it, those created above.
    WriteFileAtomically(path, *manifest + "\n");
    ChangeMode(path, 0600);
  }
  ChangeMode(directory, 0711);
}

// What cannot be removed stays: it is only a little room.
void JobDirectories::Trim(JobId job, int attempts) const {
  for (int attempt = 0; attempt < attempts; ++attempt) TrimAttempt(OfAttempt(job, attempt));
  const Descriptor directory = OpenDirectory(Of(job));
  if (!directory) return;
  if (const Descriptor run = OpenDirectory(Of(job) + "/run"); run)
    ::unlinkat(run.get(), kStopNotice, 0);
  for (const char* name : kUsersDirectories) ::unlinkat(directory.get(), name, AT_REMOVEDIR);
}

bool JobDirectories::HasOnlyOutput(JobId job) const {
  std::error_code error;
  for (std::filesystem::directory_iterator at(Of(job), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("attempt-") || name == "manifest.json" || name == "collect.log") continue;
    if (HasFiles(at->path())) return false;
  }
  // A directory that is not there may be on a disk that is not mounted.
  return !error;
}

}  // namespace renzan::cluster::local
