#include "renzan/observe/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0)
    Fail(ErrorCode::kCantCreate, "cannot open {} for appending: {}", path_, std::strerror(errno));
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::Append(std::string_view record) {
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  while (!record.empty()) {
    const ssize_t wrote = ::write(fd_, record.data(), record.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      // Remove the partial record, or it would corrupt the next one.
      [[maybe_unused]] const int ignored = ::ftruncate(fd_, end);
      FailErrno(error, fmt::format("cannot write {}", path_));
    }
    record.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace renzan
