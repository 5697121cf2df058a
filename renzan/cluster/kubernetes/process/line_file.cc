#include "renzan/cluster/kubernetes/process/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::cluster::kubernetes {
namespace {

int Open(const std::string& path) {
  if (path.empty()) return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (path == "-") return ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

}  // namespace

LineFile::LineFile(const std::string& path)
    : name_(path.empty()  ? "stderr"
            : path == "-" ? "stdout"
                          : path),
      fd_(Open(path)) {
  if (!fd_)
    throw Error(ErrorCode::kCantCreate,
                fmt::format("cannot write {}: {}", name_, std::strerror(errno)), errno);
}

void LineFile::Append(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t written = ::write(fd_.get(), lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (!std::exchange(failed_, true))
        LogWarning("decisions are not logged for now: cannot write {}: {}", name_,
                   std::strerror(errno));
      return;
    }
    failed_ = false;
    lines.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace renzan::cluster::kubernetes
