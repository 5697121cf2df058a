#include "renzan/train/supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

using std::chrono::steady_clock;

// After SIGTERM, which a worker may answer with a last checkpoint that it cannot finish alone.
constexpr double kSecondsUntilKill = 2;
// Deaths this close together are one event: the cause is picked among them.
constexpr double kSettleSeconds = 0.2;

// How likely a worker's end is the cause of the others': a signal, then an error of its own, then
// the loss of a peer; 0 for an end that is no failure.
int Severity(int status) {
  if (WIFSIGNALED(status)) return 3;
  const int code = WEXITSTATUS(status);
  if (code == 0 || code == static_cast<int>(ErrorCode::kTempFail)) return 0;
  return code == static_cast<int>(ErrorCode::kUnavailable) ? 1 : 2;
}

// Says on stderr who failed and returns the exit status for it.
int Report(const std::string& who, int signal, int exit_status, bool others) {
  const char* rest = others ? "; the other workers have been ended" : "";
  if (signal != 0) {
    LogError("{} was killed by signal {} ({}){}", who, signal, strsignal(signal), rest);
    return static_cast<int>(ErrorCode::kUnavailable);
  }
  LogError("{} ended with exit status {}{}", who, exit_status, rest);
  return exit_status;
}

void Show(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

OutputRelay::OutputRelay() {
  if (pipe2(fds_, O_CLOEXEC | O_NONBLOCK) != 0)
    Fail(ErrorCode::kOsError, "pipe: {}", std::strerror(errno));
  // mpirun is to wait for us rather than lose lines.
  fcntl(fds_[1], F_SETFL, 0);
}

OutputRelay::~OutputRelay() {
  close(fds_[0]);
  CloseWriteEnd();
}

void OutputRelay::CloseWriteEnd() {
  if (fds_[1] >= 0) close(std::exchange(fds_[1], -1));
}

void OutputRelay::Drain() {
  char buffer[4096];
  ssize_t length;
  while ((length = read(fds_[0], buffer, sizeof(buffer))) > 0)
    Show(output_.Feed({buffer, static_cast<size_t>(length)}));
  if (length == 0) ended_ = true;
}

const std::optional<MpiWorkerEnd>& OutputRelay::Finish() {
  Drain();
  Show(output_.Finish());
  return output_.worker_end();
}

Supervisor::Supervisor(std::vector<Worker> workers, OutputRelay* mpirun, const SignalQueue& signals,
                       double grace_seconds)
    : workers_(std::move(workers)),
      mpirun_(mpirun),
      signals_(signals),
      grace_seconds_(grace_seconds) {}

Supervisor::~Supervisor() { Signal(SIGKILL); }

int Supervisor::Run() {
  while (AnyRunning()) {
    const int signal = signals_.Next(SecondsUntilNextStep(), mpirun_ ? mpirun_->read_fd() : -1);
    if (signal != 0 && signal != SIGCHLD) PassOn(signal == SIGHUP ? SIGTERM : signal);
    if (mpirun_) mpirun_->Drain();
    Reap();
    EndTheRest();
  }
  const std::optional<MpiWorkerEnd> end = mpirun_ ? mpirun_->Finish() : std::nullopt;
  if (!cause_) return stopped_on_request_ ? static_cast<int>(ErrorCode::kTempFail) : 0;
  if (end) return Report(fmt::format("worker {}", end->rank), end->signal, end->exit_status, true);
  return Report(fmt::format("{} (pid {})", cause_->name, cause_->pid),
                WIFSIGNALED(cause_->status) ? WTERMSIG(cause_->status) : 0,
                WEXITSTATUS(cause_->status), workers_.size() > 1);
}

bool Supervisor::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
}

void Supervisor::Reap() {
  for (Worker& worker : workers_) {
    if (!worker.running || waitpid(worker.pid, &worker.status, WNOHANG) != worker.pid) continue;
    worker.running = false;
    const int severity = Severity(worker.status);
    if (severity == 0) {
      stopped_on_request_ |= WEXITSTATUS(worker.status) != 0;
      continue;
    }
    if (!first_failure_) first_failure_ = steady_clock::now();
    // Of deaths close together the gravest is the cause.
    const bool settled = SecondsSinceFailure() > kSettleSeconds;
    if (!cause_ || (!settled && severity > Severity(cause_->status))) cause_ = worker;
  }
}

double Supervisor::SecondsSinceFailure() const {
  return std::chrono::duration<double>(steady_clock::now() - *first_failure_).count();
}

double Supervisor::SecondsUntilNextStep() const {
  if (!first_failure_) return 60;  // SIGCHLD ends the wait earlier
  const double next = terminated_ ? grace_seconds_ + kSecondsUntilKill : grace_seconds_;
  return std::clamp(next - SecondsSinceFailure(), 0.01, 1.0);
}

void Supervisor::EndTheRest() {
  if (!first_failure_) return;
  if (!terminated_ && SecondsSinceFailure() >= grace_seconds_) {
    terminated_ = true;
    Signal(SIGTERM);
  }
  if (SecondsSinceFailure() >= grace_seconds_ + kSecondsUntilKill) Signal(SIGKILL);
}

// To the process groups of those that still run.
void Supervisor::Signal(int signal) const {
  for (const Worker& worker : workers_)
    if (worker.running) kill(-worker.pid, signal);
}

// mpirun answers SIGTERM by killing its workers a second later, which is no time for a checkpoint,
// so they get the signal directly.
void Supervisor::PassOn(int signal) const {
  const std::vector<pid_t> children = mpirun_ ? ChildrenOf(workers_[0].pid) : std::vector<pid_t>();
  if (children.empty()) return Signal(signal);
  for (pid_t child : children) kill(child, signal);
}

}  // namespace renzan
