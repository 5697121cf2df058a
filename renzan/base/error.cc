#include "renzan/base/error.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace renzan {

namespace {

std::atomic<bool> throw_failed_checks = false;

bool IsMissing(int errno_value) { return errno_value == ENOENT || errno_value == ENOTDIR; }

std::string Describe(std::string_view what, int errno_value) {
  return fmt::format("{}: {}", what, std::generic_category().message(errno_value));
}

}  // namespace

bool IsMachineFailure(ErrorCode code) {
  return code == ErrorCode::kOsError || code == ErrorCode::kIo;
}

bool Error::is_missing_file() const { return IsMissing(errno_value_); }

bool Error::is_full_disk() const { return errno_value_ == ENOSPC || errno_value_ == EDQUOT; }

void FailErrno(int errno_value, std::string_view what) {
  const bool lasting = IsMissing(errno_value) || errno_value == EACCES || errno_value == EISDIR ||
                       errno_value == EROFS || errno_value == EEXIST || errno_value == ELOOP ||
                       errno_value == ENAMETOOLONG;
  throw Error(lasting ? ErrorCode::kCantCreate : ErrorCode::kIo, Describe(what, errno_value),
              errno_value);
}

void FailToRead(int errno_value, std::string_view path) {
  const bool lasting = IsMissing(errno_value) || errno_value == EACCES || errno_value == EPERM ||
                       errno_value == EISDIR || errno_value == ELOOP || errno_value == ENAMETOOLONG;
  throw Error(lasting ? ErrorCode::kNoInput : ErrorCode::kIo,
              Describe(fmt::format("cannot read {}", path), errno_value), errno_value);
}

void ThrowFailedChecks() { throw_failed_checks = true; }

namespace internal {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  const std::string text = fmt::format("internal error: {}:{}: CHECK({}) failed{}{}", file, line,
                                       condition, message.empty() ? "" : ": ", message);
  if (throw_failed_checks) throw Error(ErrorCode::kSoftware, text);
  std::fprintf(stderr, "renzan: %s\n", text.c_str());
  std::fflush(stderr);
  // Skips destructors and exit handlers: after a broken invariant they could hang or corrupt data.
  _exit(static_cast<int>(ErrorCode::kSoftware));
}

}  // namespace internal
}  // namespace renzan
