#include "renzan/base/error.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace renzan {

void FailErrno(int errno_value, std::string_view what) {
  ErrorCode code = ErrorCode::kIo;
  if (errno_value == ENOENT || errno_value == EACCES || errno_value == EISDIR) {
    code = ErrorCode::kNoInput;
  } else if (errno_value == EROFS || errno_value == EEXIST || errno_value == ENOTDIR) {
    code = ErrorCode::kCantCreate;
  }
  Fail(code, "{}: {}", what, std::strerror(errno_value));
}

namespace internal {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "renzan: internal error: %s:%d: CHECK(%s) failed%s%s\n", file, line,
               condition, message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  // Skips destructors and exit handlers: after a broken invariant they could hang or corrupt data.
  _exit(static_cast<int>(ErrorCode::kSoftware));
}

}  // namespace internal
}  // namespace renzan
