#include "renzan/base/process/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "renzan/base/clock.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/base/process/pipe.h"

namespace renzan {
namespace {

using Outcome = ProgramResult::Outcome;

constexpr size_t kLastErrorBytes = 4096;
// All that a pipe holds. One call reads no more, or a program that writes all the time would
// neither be stopped nor run out of time.
constexpr int kBuffersOfAPipe = 16;
// Without pidfds, the end of the program is noticed this late.
constexpr int kLongestPollMs = 50;

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // whoever read it is gone
    text.remove_prefix(static_cast<size_t>(count));
  }
}

class Run {
 public:
  Run(pid_t pid, bool leads_group, Descriptor output, Descriptor errors,
      const ProgramLimits& limits)
      : pid_(pid),
        leads_group_(leads_group),
        process_(pid),
        output_(std::move(output)),
        errors_(std::move(errors)),
        limits_(limits) {
    for (const Descriptor* pipe : {&output_, &errors_})
      if (*pipe) fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
  }

  ProgramResult Finish(const std::stop_token& stop) {
    const double deadline = SystemClock().MonotonicSeconds() + limits_.seconds;
    for (;;) {
      Poll();
      const bool ended = Reap(WNOHANG);
      // What it wrote before its end is in the pipes by now.
      Read(output_, [this](std::string_view piece) { result_.output += piece; });
      Read(errors_, [this](std::string_view piece) { TakeErrors(piece); });
      if (result_.output.size() > limits_.output_bytes) result_.outcome = Outcome::kOutputLimit;
      if (ended) return std::move(result_);
      if (stop.stop_requested()) result_.outcome = Outcome::kStopped;
      if (SystemClock().MonotonicSeconds() >= deadline) result_.outcome = Outcome::kTimeLimit;
      if (result_.outcome != Outcome::kEnded) {
        kill(leads_group_ ? -pid_ : pid_, SIGKILL);
        Reap(0);
        return std::move(result_);
      }
    }
  }

 private:
  void Poll() {
    std::array<pollfd, 3> waiting = {
        {{output_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {process_.fd(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), kLongestPollMs);
  }

  bool Reap(int flags) {
    int status = 0;
    pid_t reaped = 0;
    do {
      reaped = waitpid(pid_, &status, flags);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) return false;
    // Without a status where this process was started with SIGCHLD ignored.
    if (reaped == pid_) result_.end = EndOf(status);
    return true;
  }

  template <typename Take>
  void Read(Descriptor& pipe, const Take& take) {
    std::array<char, 4096> buffer;
    for (int left = kBuffersOfAPipe;
         left > 0 && pipe && result_.output.size() <= limits_.output_bytes; --left) {
      const ssize_t count = read(pipe.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return pipe.Close();
      take(std::string_view(buffer.data(), static_cast<size_t>(count)));
    }
  }

  void TakeErrors(std::string_view piece) {
    WriteAll(STDERR_FILENO, piece);
    result_.last_errors += piece;
    if (result_.last_errors.size() > kLastErrorBytes)
      result_.last_errors.erase(0, result_.last_errors.size() - kLastErrorBytes);
  }

  const pid_t pid_;
  const bool leads_group_;
  const ProcessHandle process_;
  Descriptor output_, errors_;
  const ProgramLimits& limits_;
  ProgramResult result_;
};

}  // namespace

std::variant<ProgramResult, StartError> RunProgram(ChildOptions options,
                                                   const ProgramLimits& limits,
                                                   const std::stop_token& stop) {
  Pipe output = MakePipe(), errors;
  options.stdout_fd = output.write_end.get();
  options.stderr_fd = -1;
  if (limits.copy_errors) {
    errors = MakePipe();
    options.stderr_fd = errors.write_end.get();
  }
  const std::variant<pid_t, StartError> started = StartChild(options);
  if (const auto* failure = std::get_if<StartError>(&started)) return *failure;
  output.write_end.Close();
  errors.write_end.Close();
  return Run(std::get<pid_t>(started), options.leads != ChildOptions::Leads::kNothing,
             std::move(output.read_end), std::move(errors.read_end), limits)
      .Finish(stop);
}

}  // namespace renzan
