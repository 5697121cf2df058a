#pragma once

// Error is for failures caused by users and machines (a wrong key, a full disk, a dead peer); CHECK
// is for bugs. An Error has a code from sysexits.h, which becomes the process's exit status, and a
// message with context: the outermost first, the root cause last.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace renzan {

// Exit codes as in <sysexits.h>; docs/exit_codes.md explains them to users.
enum class ErrorCode {
  kUsage = 64,        // wrong command line
  kData = 65,         // the user's data is invalid: a bad row, a wrong checksum, an id out of range
  kNoInput = 66,      // a file does not exist or cannot be read
  kUnavailable = 69,  // a peer died or did not answer, a port is in use
  kSoftware = 70,     // a bug, or a diverged run
  kOsError = 71,      // fork, mmap, pthread_create ...
  kCantCreate = 73,   // an output cannot be created
  kIo = 74,           // an error while reading or writing: a full disk
  kTempFail = 75,     // stopped on request: run it again
  kNoPermission = 77,  // another user's job or daemon
  kConfig = 78,        // wrong configuration
};

// Whether a process's own machine failed (memory, disk: kOsError, kIo), not a peer, the program or
// what it was told to do: another machine, or the same one later, may succeed.
bool IsMachineFailure(ErrorCode code);

class Error : public std::runtime_error {
 public:
  // `errno_value`: of the system call that failed; 0 if none did.
  Error(ErrorCode code, const std::string& message, int errno_value = 0)
      : std::runtime_error(message), code_(code), errno_value_(errno_value) {}

  ErrorCode code() const { return code_; }
  // Whether a file does not exist, rather than exists and cannot be read.
  bool is_missing_file() const;
  // Whether a file system, or the user's quota on it, is full.
  bool is_full_disk() const;
  int exit_status() const { return static_cast<int>(code_); }

  // The same error with context prepended: "while importing day_0.gz: line 3: ...".
  Error WithContext(std::string_view context) const {
    return Error(code_, fmt::format("{}: {}", context, what()), errno_value_);
  }

 private:
  ErrorCode code_;
  int errno_value_;
};

// Throws an Error: Fail(ErrorCode::kData, "{}:{}: label is not 0 or 1", file, line).
template <typename... Args>
[[noreturn]] void Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Throws an Error that ends with the text of `errno_value` ("No space left on device"), for
// something that cannot be created or written: kCantCreate if the name is the reason, else kIo.
[[noreturn]] void FailErrno(int errno_value, std::string_view what);

// The same for a file that cannot be read: kNoInput if it is missing or may not be read, else kIo,
// which another attempt may avoid.
[[noreturn]] void FailToRead(int errno_value, std::string_view path);

// From now on a failed CHECK throws an Error (kSoftware) instead of ending the process: for a
// library, which must not end its host.
void ThrowFailedChecks();

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);
}  // namespace internal

}  // namespace renzan

// An invariant, checked in every build. If it fails, the process exits immediately with a message
// and exit status 70 (kSoftware), but see ThrowFailedChecks().
#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::renzan::internal::CheckFailed(__FILE__, __LINE__, #condition, ""); \
  } while (false)

#define CHECK_MSG(condition, ...)                                                                  \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::renzan::internal::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
