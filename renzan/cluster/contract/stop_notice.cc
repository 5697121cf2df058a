#include "renzan/cluster/contract/stop_notice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "renzan/base/error.h"
#include "renzan/base/process/descriptor.h"

namespace renzan::cluster {
namespace {

Descriptor OpenRunDirectory(const std::string& run_dir) {
  return Descriptor(open(run_dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

void WriteStopNotice(const std::string& run_dir, const StopNotice& notice, uid_t uid, gid_t gid,
                     const std::string& writer) {
  const std::string unfinished = fmt::format(".{}.new{}", kStopNotice, writer);
  const std::string text = fmt::format("{{\"grace_seconds\": {:.3f}, \"deadline\": {:.3f}}}\n",
                                       notice.grace_seconds, notice.deadline);
  const Descriptor directory = OpenRunDirectory(run_dir);
  const auto fail = [&] {
    const int error = errno;
    unlinkat(directory.get(), unfinished.c_str(), 0);
    FailErrno(error, fmt::format("cannot write {}/{}", run_dir, kStopNotice));
  };
  if (directory.get() < 0) fail();
  unlinkat(directory.get(), unfinished.c_str(), 0);
  // Always creates a new file: never follows a link or overwrites a file of the user.
  const Descriptor file(openat(directory.get(), unfinished.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) fail();
  if (geteuid() == 0 && fchown(file.get(), uid, gid) != 0) fail();
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written >= 0 && written < static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size())) fail();
  if (renameat(directory.get(), unfinished.c_str(), directory.get(), kStopNotice) != 0) fail();
}

void RemoveStopNotice(const std::string& run_dir) {
  const Descriptor directory = OpenRunDirectory(run_dir);
  if (directory.get() >= 0) unlinkat(directory.get(), kStopNotice, 0);
}

}  // namespace renzan::cluster
