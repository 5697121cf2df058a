#include "renzan/cluster/local/controller/inherited_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan::cluster::local {

namespace fs = std::filesystem;

std::string InheritedFiles::Path(JobId job) const {
  return fmt::format("{}/{}.json", directory_, job);
}

void InheritedFiles::Save(JobId job, const spec::Inherited& inherited) const {
  const std::string path = Path(job);
  WriteFileAtomically(path, spec::InheritedToJson(inherited));
  if (::chmod(path.c_str(), 0600) != 0) FailErrno(errno, "cannot change the mode of " + path);
}

void InheritedFiles::Remove(JobId job) const {
  const std::string path = Path(job);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    LogWarning("cannot remove the environment of job {} ({}): {}", job, path, std::strerror(errno));
}

void InheritedFiles::KeepOnly(const std::set<JobId>& jobs) const {
  CreateDirectories(directory_);
  // Files there get their own mode only once they have been written.
  if (::chmod(directory_.c_str(), 0700) != 0)
    FailErrno(errno, "cannot change the mode of " + directory_);
  std::error_code error;
  for (fs::directory_iterator at(directory_, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().stem();
    JobId job = 0;
    const char* const end = name.data() + name.size();
    const bool is_job = std::from_chars(name.data(), end, job).ptr == end;
    if (is_job && jobs.contains(job) && at->path().extension() == ".json") continue;
    ::unlink(at->path().c_str());  // also temporary files of a daemon that was killed
  }
}

std::string InheritedFiles::PathOf(JobId job) const {
  std::string path = Path(job);
  return FileExists(path) ? path : "";
}

int64_t InheritedFiles::BytesOf(JobId job) const {
  struct stat about;
  return ::stat(Path(job).c_str(), &about) == 0 ? about.st_size : 0;
}

std::map<std::string, std::string> InheritedFiles::EnvironmentOf(JobId job) const {
  const std::string path = PathOf(job);
  if (path.empty()) return {};
  return spec::InheritedFromJson(ReadFile(path)).environment;
}

}  // namespace renzan::cluster::local
