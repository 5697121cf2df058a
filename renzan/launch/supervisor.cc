#include "renzan/launch/supervisor.h"

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

// The exit status of a worker that compared and found a difference.
constexpr int kExitDiffers = 1;

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
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) requested_ = signal;
    if (signal != 0 && signal != SIGCHLD) PassOn(signal == SIGHUP ? SIGTERM : signal);
    if (mpirun_) mpirun_->Drain();
    Reap();
    EndTheRest();
  }
  return Report();
}

// Says on stderr who failed, if anybody did, and returns the exit status for it.
int Supervisor::Report() const {
  if (!cause_) return answer_;
  if (cause_severity_ == Severity::kRequested) {
    LogInfo("stopped by signal {} ({})", requested_, strsignal(requested_));
    return 128 + requested_;
  }
  const char* rest = mpirun_ || workers_.size() > 1 ? "; the other workers have been ended" : "";
  if (cause_->signal != 0) {
    LogError("{} was killed by signal {} ({}){}", cause_->who, cause_->signal,
             strsignal(cause_->signal), rest);
    return static_cast<int>(ErrorCode::kUnavailable);
  }
  LogError("{} ended with exit status {}{}", cause_->who, cause_->exit_status, rest);
  return cause_->exit_status;
}

bool Supervisor::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
}

void Supervisor::Reap() {
  for (Worker& worker : workers_) {
    int status = 0;
    if (!worker.running || waitpid(worker.pid, &status, WNOHANG) != worker.pid) continue;
    worker.running = false;
    const End end = EndOf(worker, status);
    const Severity severity = SeverityOf(end);
    if (severity == Severity::kNone) {
      answer_ = std::max(answer_, end.exit_status);
      continue;
    }
    if (!first_failure_) first_failure_ = steady_clock::now();
    // Of deaths close together the gravest is the cause.
    const bool settled = SecondsSinceFailure() > kSettleSeconds;
    if (cause_ && (settled || severity <= cause_severity_)) continue;
    cause_ = end;
    cause_severity_ = severity;
  }
}

// mpirun says which of its workers failed; if it does not, it failed itself.
Supervisor::End Supervisor::EndOf(const Worker& worker, int status) const {
  if (mpirun_) {
    if (const std::optional<MpiWorkerEnd>& end = mpirun_->Finish())
      return {fmt::format("worker {}", end->rank), end->signal, end->exit_status, false};
  }
  return {fmt::format("{} (pid {})", worker.name, worker.pid),
          WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          mpirun_ != nullptr};
}

Supervisor::Severity Supervisor::SeverityOf(const End& end) const {
  const bool lost_peer = end.exit_status == static_cast<int>(ErrorCode::kUnavailable);
  const bool is_answer = end.exit_status == 0 ||
                         end.exit_status == static_cast<int>(ErrorCode::kTempFail) ||
                         (end.exit_status == kExitDiffers && !end.is_mpirun);
  if (end.signal == 0 && is_answer) return Severity::kNone;
  // The signal that was passed on, or SIGTERM from mpirun once a first worker was gone.
  const bool stop_signal = end.signal == SIGINT || end.signal == SIGTERM;
  if (requested_ != 0 && (stop_signal || lost_peer || end.is_mpirun)) return Severity::kRequested;
  if (end.signal != 0) return Severity::kSignal;
  return lost_peer ? Severity::kLostPeer : Severity::kError;
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
