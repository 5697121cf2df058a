#include "renzan/storage/cache/flock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "renzan/base/error.h"

namespace renzan {

Flock::~Flock() {
  if (fd_ >= 0) ::close(fd_);
}

bool Flock::Take(bool wait) {
  if (is_taken()) return true;
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) FailErrno(errno, "cannot create " + path_);
  while (::flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK) return false;
    FailErrno(error, "cannot lock " + path_);
  }
  fd_ = fd;
  return true;
}

}  // namespace renzan
