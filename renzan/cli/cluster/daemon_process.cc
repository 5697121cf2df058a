#include "renzan/cli/cluster/daemon_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/pipe.h"

namespace renzan {
namespace {

void DetachFromTerminal(int log_fd) {
  ::setsid();
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd < 0 || ::dup2(null_fd, STDIN_FILENO) < 0 || ::dup2(log_fd, STDOUT_FILENO) < 0 ||
      ::dup2(log_fd, STDERR_FILENO) < 0 || ::chdir("/") != 0)
    FailErrno(errno, "cannot detach from the terminal");
  LogWithTimes();
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
    // Nobody reads it if the child had already reported that it was ready.
    if (::write(error_fd, text.data(), text.size()) < 0) LogWarning("the starter has ended");
    return error.exit_status();
  } catch (const std::exception& error) {
    LogError("unexpected: {}", error.what());
    return static_cast<int>(ErrorCode::kSoftware);
  }
}

}  // namespace

void StartDetached(const std::string& log, const std::function<void(int ready_fd)>& body) {
  Descriptor log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_file) FailErrno(errno, log);
  Pipe ready = MakePipe(), error = MakePipe();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) Fail(ErrorCode::kOsError, "cannot start a process: {}", std::strerror(errno));
  if (child == 0) {
    ready.read_end.Close();
    error.read_end.Close();
    // Not exit(): it would run destructors of the parent's objects.
    const int status =
        RunDetached(log_file.get(), ready.write_end.get(), error.write_end.get(), body);
    std::fflush(nullptr);
    ::_exit(status);
  }
  ready.write_end.Close();
  error.write_end.Close();
  if (!ReadToEnd(ready.read_end).empty()) return;

  const std::string message = ReadToEnd(error.read_end);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!message.empty() && WIFEXITED(status))
    throw Error(static_cast<ErrorCode>(WEXITSTATUS(status)), message);
  Fail(ErrorCode::kUnavailable, "the daemon ended before it was ready: see {}", log);
}

}  // namespace renzan
