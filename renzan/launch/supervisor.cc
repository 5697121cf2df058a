#include "renzan/launch/supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/oom_kills.h"
#include "renzan/base/process/process_table.h"

namespace renzan {
namespace {

using std::chrono::steady_clock;

// How long to wait after SIGTERM, on which a worker may start a last checkpoint that it cannot
// finish without its peers.
constexpr double kSecondsUntilKill = 2;
// Deaths within this time count as one event, and the cause is chosen among them.
constexpr double kSettleSeconds = 0.2;

double SecondsSince(steady_clock::time_point moment) {
  return std::chrono::duration<double>(steady_clock::now() - moment).count();
}

void Show(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

// The write end stays blocking, so that mpirun waits for us instead of losing lines.
OutputRelay::OutputRelay() : pipe_(MakePipe()) { fcntl(pipe_.read_end.get(), F_SETFL, O_NONBLOCK); }

void OutputRelay::Drain() {
  char buffer[4096];
  ssize_t length;
  while ((length = read(pipe_.read_end.get(), buffer, sizeof(buffer))) > 0)
    Show(output_.Feed({buffer, static_cast<size_t>(length)}));
  if (length == 0) ended_ = true;
}

const std::optional<MpiWorkerEnd>& OutputRelay::Finish() {
  Drain();
  Show(output_.Finish());
  return output_.worker_end();
}

Supervisor::Supervisor(std::vector<Worker> workers, OutputRelay* mpirun, const SignalQueue& signals,
                       const LaunchOptions& options, int64_t oom_kills_before)
    : workers_(std::move(workers)),
      mpirun_(mpirun),
      signals_(signals),
      program_(options.kind),
      grace_seconds_(options.grace_seconds),
      grow_after_(options.grow_after_seconds),
      oom_kills_before_(oom_kills_before),
      mpirun_watch_(options.workers, options.mpirun_patience_seconds) {
  PlanToGrow();
}

Supervisor::~Supervisor() { Kill(); }

LaunchResult Supervisor::Run() {
  while (AnyRunning()) {
    const int signal = signals_.Next(SecondsUntilNextStep(), mpirun_ ? mpirun_->read_fd() : -1);
    if (IsStopSignal(signal)) requested_ = signal;
    if (signal != 0 && signal != SIGCHLD) Forward(signal == SIGHUP ? SIGTERM : signal);
    if (mpirun_) mpirun_->Drain();
    Reap();
    StopTheRest();
    EndHungMpirun();
    StopToGrow();
  }
  return Result();
}

LaunchResult Supervisor::Result() const {
  LaunchResult result = {.exit_status = answer_, .stop_requested = requested_ != 0, .died = died_};
  const bool stopped = cause_ && cause_severity_ == Severity::kRequested;
  if (stopped && requested_ != 0) result = StoppedBy(requested_);
  const int stopped_status = static_cast<int>(ErrorCode::kTempFail);
  if (growing_ && requested_ == 0 && (cause_ ? stopped : answer_ == stopped_status)) {
    result.kind = LaunchResult::Kind::kGrowing;
    result.exit_status = stopped_status;
  }
  if (growing_ && requested_ == 0 && !cause_ && answer_ == 0)
    LogInfo("all workers ended with 0, so the run is complete; {} would have restarted it",
            stopped_status);
  for (const Worker& worker : workers_) result.ends.push_back(worker.end);
  if (!cause_ || stopped) return result;
  const ProcessEnd& how = cause_->how;
  result.kind = LaunchResult::Kind::kFailure;
  result.exit_status = how.signal != 0 ? static_cast<int>(ErrorCode::kUnavailable) : how.exit_code;
  result.transient = IsMachineFailure(ErrorCode{result.exit_status}) ||
                     MayHaveLostPeer(ProgramOf(*cause_), result.exit_status);
  // No worker has given that answer.
  if (cause_->is_mpirun && IsAnswer(WorkerProgram::kRenzan, result.exit_status))
    result.exit_status = static_cast<int>(ErrorCode::kUnavailable);
  result.cause = fmt::format("{} {}", cause_->who, DescribeEnd(how));
  result.out_of_memory = how.signal == SIGKILL && OomKills() > oom_kills_before_;
  if (result.out_of_memory) result.cause += " because memory ran out";
  if (result.out_of_memory && program_ == WorkerProgram::kRenzan)
    result.cause += " (`renzan plan` says what workers need)";
  return result;
}

bool Supervisor::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
}

void Supervisor::Reap() {
  for (Worker& worker : workers_) {
    int status = 0;
    if (!worker.running || waitpid(worker.pid, &status, WNOHANG) != worker.pid) continue;
    worker.running = false;
    worker.end = renzan::EndOf(status);
    const End end = EndOf(worker, status);
    const Severity severity = SeverityOf(end);
    if (severity == Severity::kNone) {
      answer_ = std::max(answer_, end.how.exit_code);
    } else {
      TakeFailure(end, severity);
    }
  }
}

void Supervisor::TakeFailure(const End& end, Severity severity) {
  const bool by_itself =
      severity == Severity::kSignal || IsMachineFailure(ErrorCode{end.how.exit_code});
  if (by_itself && !terminated_) ++died_;
  if (!first_failure_) first_failure_ = steady_clock::now();
  // A peer lost after a stop request has merely finished sooner: others may still be writing a
  // checkpoint.
  if (!grace_start_ && (severity != Severity::kRequested || end.how.signal != 0))
    grace_start_ = steady_clock::now();
  // Among deaths close together, the most severe is the cause; and a worker that reports a lost
  // peer did so because of one that ends later, however long that one takes to end.
  const bool is_close = SecondsSince(*first_failure_) <= kSettleSeconds;
  const bool explains = cause_ && cause_->how.signal == 0 &&
                        cause_->how.exit_code == static_cast<int>(ErrorCode::kUnavailable) &&
                        !(terminated_ && end.how.signal != 0);
  if (cause_ && (severity <= cause_severity_ || !(is_close || explains))) return;
  cause_ = end;
  cause_severity_ = severity;
}

Supervisor::End Supervisor::EndOf(const Worker& worker, int status) const {
  const ProcessEnd own = renzan::EndOf(status);
  if (!mpirun_) return {fmt::format("{} (pid {})", worker.name, worker.pid), own};
  // mpirun names the worker that failed. If it does not, mpirun itself failed, unless its exit
  // status is 128 + signal: then a worker died before mpirun had started them all.
  if (const std::optional<MpiWorkerEnd>& end = mpirun_->Finish())
    return {fmt::format("worker {}", end->rank), {end->exit_status, end->signal}};
  if (own.exit_code > 128)
    return {fmt::format("a worker of mpirun (pid {})", worker.pid),
            {.signal = own.exit_code - 128},
            true};
  return {fmt::format("mpirun (pid {}){}", worker.pid,
                      mpirun_hung_ ? ", which hung after losing a worker," : ""),
          own, true};
}

Supervisor::Severity Supervisor::SeverityOf(const End& end) const {
  const bool lost_peer = end.how.signal == 0 && MayHaveLostPeer(ProgramOf(end), end.how.exit_code);
  // mpirun itself never answers 1.
  const WorkerProgram answering = end.is_mpirun ? WorkerProgram::kAny : program_;
  if (end.how.signal == 0 && IsAnswer(answering, end.how.exit_code)) return Severity::kNone;
  // The forwarded signal, or SIGTERM from mpirun after a first worker had ended.
  const bool stop_signal = end.how.signal == SIGINT || end.how.signal == SIGTERM;
  if ((requested_ != 0 || growing_) && (stop_signal || lost_peer || end.is_mpirun))
    return Severity::kRequested;
  if (end.how.signal != 0) return Severity::kSignal;
  return lost_peer ? Severity::kLostPeer : Severity::kError;
}

// mpirun has statuses of its own.
WorkerProgram Supervisor::ProgramOf(const End& end) const {
  return end.is_mpirun ? WorkerProgram::kRenzan : program_;
}

double Supervisor::SecondsUntilNextStep() const {
  double longest = mpirun_ ? mpirun_watch_.seconds_between_looks() : 60;
  if (grow_at_) longest = std::clamp(-SecondsSince(*grow_at_), 0.01, longest);
  if (mpirun_ || !grace_start_) return longest;  // SIGCHLD ends the wait earlier
  const double next = terminated_ ? grace_seconds_ + kSecondsUntilKill : grace_seconds_;
  return std::clamp(next - SecondsSince(*grace_start_), 0.01, 1.0);
}

void Supervisor::StopTheRest() {
  if (!grace_start_) return;
  const double seconds = SecondsSince(*grace_start_);
  if (!terminated_ && seconds >= grace_seconds_) {
    terminated_ = true;
    for (const Worker& worker : workers_)
      if (worker.running) kill(worker.pid, SIGTERM);
  }
  if (seconds >= grace_seconds_ + kSecondsUntilKill) Kill();
}

void Supervisor::EndHungMpirun() {
  if (!mpirun_ || !workers_[0].running || !mpirun_watch_.IsHung(workers_[0].pid)) return;
  mpirun_hung_ = true;
  Kill();
}

void Supervisor::PlanToGrow() {
  if (grow_after_.count() > 0)
    grow_at_ =
        steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(grow_after_);
}

void Supervisor::StopToGrow() {
  if (!grow_at_ || steady_clock::now() < *grow_at_) return;
  grow_at_.reset();
  // A worker that has died, or was asked to stop already, is not asked again.
  if (first_failure_ || requested_ != 0 || !std::ranges::all_of(workers_, &Worker::running)) return;
  const std::vector<pid_t> pids = RunningWorkers();
  if (pids.empty()) return PlanToGrow();  // mpirun has not started them
  if (!std::ranges::all_of(pids, [](pid_t pid) { return HandlesOrIgnores(pid, SIGTERM); })) {
    if (!cannot_grow_) LogInfo("not growing: a worker does not handle SIGTERM and would lose work");
    cannot_grow_ = true;
    return PlanToGrow();
  }
  LogInfo("stopping the workers to restart with more of them");
  growing_ = true;
  for (const pid_t pid : pids) kill(pid, SIGTERM);
}

// Including the process groups that the running workers lead.
void Supervisor::Kill() const {
  for (const Worker& worker : workers_)
    if (worker.running) kill(-worker.pid, SIGKILL);
}

std::vector<pid_t> Supervisor::RunningWorkers() const {
  // On a terminating signal mpirun kills its workers a second later, too soon for a checkpoint, so
  // they get the signal directly.
  if (mpirun_) return ChildrenOf(workers_[0].pid);
  std::vector<pid_t> pids;
  for (const Worker& worker : workers_)
    if (worker.running) pids.push_back(worker.pid);
  return pids;
}

void Supervisor::Forward(int signal) const {
  const std::vector<pid_t> pids = RunningWorkers();
  // mpirun has not started its workers: end it first. It blocks SIGTERM.
  if (mpirun_ && pids.empty()) kill(-workers_[0].pid, signal == SIGTERM ? SIGINT : signal);
  size_t left_out = 0;
  for (const pid_t pid : pids) {
    if (signal == SIGUSR1 && !HandlesOrIgnores(pid, SIGUSR1)) {
      ++left_out;
    } else {
      kill(pid, signal);
    }
  }
  if (left_out > 0)
    LogInfo("SIGUSR1 was not passed on to {} of {} (no handler)", left_out,
            Counted(pids.size(), "worker"));
}

}  // namespace renzan
