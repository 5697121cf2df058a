#include "renzan/cluster/local/controller/job_directories.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

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
  for (const char* name : {"run", "checkpoints", "artifacts"})
    CreateForUser(directory + "/" + name, job.uid, job.gid);
  if (manifest) {
    const std::string path = directory + "/manifest.json";
    // Syncs the directory and, with it, those created above.
    WriteFileAtomically(path, *manifest + "\n");
    ChangeMode(path, 0600);
  }
  ChangeMode(directory, 0711);
}

}  // namespace renzan::cluster::local
