#include "renzan/base/process/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "renzan/base/error.h"

namespace renzan {

Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    Fail(ErrorCode::kOsError, "cannot create a pipe: {}", std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string ReadToEnd(const Descriptor& read_end) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = read(read_end.get(), buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(buffer, static_cast<size_t>(bytes));
  }
}

}  // namespace renzan
