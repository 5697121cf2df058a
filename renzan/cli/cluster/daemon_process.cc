#include "renzan/cli/cluster/daemon_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) FailErrno(errno, "cannot create a pipe");
  }
  ~Pipe() {
    for (const int fd : ends)
      if (fd >= 0) ::close(fd);
  }
  void CloseEnd(int end) {
    ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends = {-1, -1};
};

// Reads to the end of file, or only the first bytes.
std::string ReadFrom(int fd, bool to_the_end) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(buffer, bytes);
    if (!to_the_end) return text;
  }
}

void DetachFromTerminal(int log_fd) {
  ::setsid();
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd < 0 || ::dup2(null_fd, STDIN_FILENO) < 0 || ::dup2(log_fd, STDOUT_FILENO) < 0 ||
      ::dup2(log_fd, STDERR_FILENO) < 0 || ::chdir("/") != 0)
    FailErrno(errno, "cannot detach from the terminal");
}

// The child's main function; returns its exit status. Writes an Error to the log and to `error_fd`.
int RunDetached(int log_fd, int ready_fd, int error_fd, const std::function<void(int)>& body) {
  try {
    DetachFromTerminal(log_fd);
    body(ready_fd);
    return 0;
  } catch (const Error& error) {
    LogError("{}", error.what());
    const std::string text = error.what();
    // Nobody reads it if the child was ready before.
    if (::write(error_fd, text.data(), text.size()) < 0) LogWarning("the starter has ended");
    return error.exit_status();
  } catch (const std::exception& error) {
    LogError("unexpected: {}", error.what());
    return static_cast<int>(ErrorCode::kSoftware);
  }
}

}  // namespace

void StartDetached(const std::string& log, const std::function<void(int ready_fd)>& body) {
  const int log_fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_fd < 0) FailErrno(errno, log);
  Pipe ready, error;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(log_fd);
    Fail(ErrorCode::kOsError, "cannot start a process: {}", std::strerror(errno));
  }
  if (child == 0) {
    ready.CloseEnd(0);
    error.CloseEnd(0);
    // Not exit(): it would run destructors of the parent's objects.
    const int status = RunDetached(log_fd, ready.ends[1], error.ends[1], body);
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(log_fd);
  ready.CloseEnd(1);
  error.CloseEnd(1);
  if (!ReadFrom(ready.ends[0], /*to_the_end=*/false).empty()) return;

  const std::string message = ReadFrom(error.ends[0], /*to_the_end=*/true);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!message.empty() && WIFEXITED(status))
    throw Error(static_cast<ErrorCode>(WEXITSTATUS(status)), message);
  Fail(ErrorCode::kUnavailable, "the daemon ended before it was ready: see {}", log);
}

}  // namespace renzan
