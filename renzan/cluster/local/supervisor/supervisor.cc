// The supervisor of one attempt: starts the workers, watches over them, and writes down how they
// ended.

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/base/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_table.h"
#include "renzan/base/process/signals.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/gang.h"
#include "renzan/cluster/local/supervisor/gang_state.h"
#include "renzan/cluster/local/supervisor/memory_use.h"
#include "renzan/cluster/local/supervisor/request_box.h"
#include "renzan/cluster/local/supervisor/stop_notice.h"
#include "renzan/cluster/local/supervisor/supervisor_process.h"

namespace renzan::cluster::local {
namespace {

// A file that could not be written (a full disk) is tried again after this.
constexpr double kRetrySeconds = 1;
constexpr double kLongestWaitSeconds = 60;
// Between looks at the memory of workers that may not use all there is.
constexpr double kMemorySeconds = 1;

int64_t UnixMs() { return static_cast<int64_t>(SystemClock().UnixSeconds() * 1000); }

// What signals do to a supervisor: those that it does not ignore wait in `signals`.
void IgnoreSignals() {
  // The last is a log that may not grow: a full disk, and not our end.
  for (const int signal : {SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

class Supervisor {
 public:
  Supervisor(const AttemptPaths& paths, AttemptPlan plan, const SignalQueue& signals)
      : paths_(paths),
        plan_(std::move(plan)),
        signals_(signals),
        inbox_(paths),
        gang_(paths_, plan_),
        limits_memory_(plan_.enforce_memory &&
                       std::any_of(plan_.workers.begin(), plan_.workers.end(),
                                   [](const auto& worker) { return worker.memory_mib > 0; })) {}

  // Returns when nobody is left.
  AttemptEnd Run() {
    const int64_t started_ms = UnixMs();
    const double began = SystemClock().MonotonicSeconds();
    AttemptEnd end;
    if (const std::optional<StartFailure> failure = gang_.Start()) {
      end = EndWithoutStart(*failure);
    } else {
      end = Watch(started_ms);
    }
    if (gang_.lost_output_bytes() > 0)
      end.message += fmt::format("; {} bytes of its output were lost", gang_.lost_output_bytes());
    end.started_ms = started_ms;
    end.ended_ms = UnixMs();
    end.ran_ms = static_cast<int64_t>((SystemClock().MonotonicSeconds() - began) * 1000);
    return end;
  }

 private:
  AttemptEnd EndWithoutStart(const StartFailure& failure) const {
    AttemptEnd end{
        .by = EndedBy::kCannotStart, .exit_code = failure.exit_code, .message = failure.message};
    end.workers.resize(plan_.workers.size(), {.exit_code = failure.exit_code});
    return end;
  }

  AttemptEnd Watch(int64_t started_ms) {
    unwritten_start_ = StartToJson({.worker_pids = gang_.pids(), .started_ms = started_ms});
    GangState state(plan_, SystemClock().MonotonicSeconds());
    for (bool first = true; state.AnyRunning(); first = false) {
      if (!first) Wait(state);
      const double now = SystemClock().MonotonicSeconds();
      // Before the dead are fetched: the signal of one that dies later wakes us again.
      const bool terminated = Terminated();
      // Before any signal is sent, so that none goes to a process id that has become free.
      state.WorkersEnded(gang_.Reap(), now);
      if (terminated) state.StopRequested(plan_.grace_seconds, now);
      for (const AttemptRequest& request : inbox_.Take()) Obey(request, now, state);
      if (limits_memory_ && now >= look_at_memory_) LookAtMemory(now, state);
      const std::vector<GangState::Signal> signals = state.Step(now);
      TellDeadline(state, now);
      for (const GangState::Signal& signal : signals) gang_.Send(signal);
      WriteStart();
    }
    gang_.KillLeftOvers();
    return state.Result();
  }

  // Whether somebody wants the supervisor to end, since the last call.
  bool Terminated() const {
    bool terminated = false;
    while (const int signal = signals_.Take()) terminated |= signal != SIGCHLD;
    return terminated;
  }

  void Wait(const GangState& state) {
    double seconds = unwritten_start_.empty() ? kLongestWaitSeconds : kRetrySeconds;
    if (const std::optional<double> next = state.NextStep())
      seconds = std::clamp(*next - SystemClock().MonotonicSeconds(), 0.0, seconds);
    if (limits_memory_)
      seconds = std::clamp(look_at_memory_ - SystemClock().MonotonicSeconds(), 0.0, seconds);
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {inbox_.fd(), POLLIN, 0}};
    poll(fds, 2, static_cast<int>(std::ceil(seconds * 1000)));
  }

  void LookAtMemory(double now, GangState& state) {
    const std::vector<std::vector<pid_t>> processes = ProcessesOf(gang_.pids());
    for (int rank = 0; rank < static_cast<int>(plan_.workers.size()); ++rank) {
      const int64_t limit_mib = plan_.workers[static_cast<size_t>(rank)].memory_mib;
      if (limit_mib == 0 || !state.running(rank)) continue;
      const std::vector<pid_t>& own = processes[static_cast<size_t>(rank)];
      // Pages are only counted where it matters.
      if (MostMemoryKib(own) <= limit_mib * 1024) continue;
      const int64_t used_kib = MemoryKib(own);
      if (used_kib > limit_mib * 1024) state.MemoryExceeded(rank, (used_kib + 1023) / 1024, now);
    }
    look_at_memory_ = SystemClock().MonotonicSeconds() + kMemorySeconds;
  }

  void Obey(const AttemptRequest& request, double now, GangState& state) {
    switch (request.kind) {
      case AttemptRequest::Kind::kStop:
        return state.StopRequested(request.grace_seconds, now);
      case AttemptRequest::Kind::kNodeFailed:
        return state.NodeFailed(request.node, now);
      case AttemptRequest::Kind::kCheckpoint:
        for (int rank = 0; rank < static_cast<int>(plan_.workers.size()); ++rank)
          if (state.running(rank)) gang_.AskForCheckpoint(rank);
    }
  }

  // Before the signal, so that whoever gets it finds the file.
  void TellDeadline(const GangState& state, double now) {
    if (!state.kill_at() || state.kill_at() == deadline_told_ || plan_.run_dir.empty()) return;
    deadline_told_ = state.kill_at();
    const double seconds = std::max(0.0, *deadline_told_ - now);
    try {
      WriteStopNotice(plan_.run_dir, {seconds, SystemClock().UnixSeconds() + seconds}, plan_.uid,
                      plan_.gid);
    } catch (const Error& error) {
      LogWarning("{}", error.what());  // they have RENZAN_GRACE_SECONDS
    }
  }

  void WriteStart() {
    if (unwritten_start_.empty()) return;
    try {
      WriteFileAtomically(paths_.started, unwritten_start_);
      unwritten_start_.clear();
    } catch (const Error& error) {
      LogWarning("{}; trying again", error.what());
    }
  }

  const AttemptPaths& paths_;
  const AttemptPlan plan_;
  const SignalQueue& signals_;
  RequestInbox inbox_;
  Gang gang_;
  const bool limits_memory_;
  double look_at_memory_ = 0;  // next, in monotonic seconds
  std::optional<double> deadline_told_;
  std::string unwritten_start_;  // empty once it is on the disk
};

// The job's user may list the directory and read its logs, which are theirs, but put nothing there.
void LetUserIn(const AttemptPaths& paths, const AttemptPlan& plan) {
  if (plan.uid == geteuid()) return;
  const bool done = chown(paths.directory.c_str(), static_cast<uid_t>(-1), plan.gid) == 0 &&
                    chmod(paths.directory.c_str(), 0750) == 0;
  if (!done) FailErrno(errno, fmt::format("cannot let user {} into {}", plan.uid, paths.directory));
}

std::unique_ptr<FileLock> TakeLockOver(const AttemptPaths& paths) {
  std::unique_ptr<FileLock> lock =
      FileLock::Inherit(kSupervisorLockDescriptor, paths.lock, std::to_string(getpid()));
  if (!lock)
    Fail(ErrorCode::kUsage,
         "renzan-supervisor is started by the daemon, with the lock of {}: to run a job, use "
         "`renzan submit`",
         paths.directory);
  return lock;
}

void ReportIn(std::string_view text) {
  // If nobody listens any more, the daemon has died; the job goes on.
  if (write(kSupervisorReadyDescriptor, text.data(), text.size()) < 0 && errno != EPIPE)
    LogWarning("the daemon does not listen: {}", std::strerror(errno));
  close(kSupervisorReadyDescriptor);
}

// Without it the attempt would count as lost and be run again, so a full disk is waited for.
void WriteEnd(const AttemptPaths& paths, const AttemptEnd& end) {
  for (;;) {
    try {
      return WriteFileAtomically(paths.end, EndToJson(end));
    } catch (const Error& error) {
      if (!FileExists(paths.directory)) throw;  // somebody removed it: nobody wants to know
      LogWarning("{}; trying again", error.what());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kRetrySeconds));
  }
}

}  // namespace

int KeepAttempt(const std::string& directory) {
  const AttemptPaths paths(directory);
  const std::unique_ptr<FileLock> lock = TakeLockOver(paths);
  // To the very end: whoever wants it to end sooner must not cost the attempt its record.
  const SignalQueue signals({SIGTERM, SIGINT, SIGCHLD});
  IgnoreSignals();
  std::unique_ptr<Supervisor> supervisor;
  try {
    umask(077);
    AdoptOrphans(true);
    if (chdir("/") != 0) FailErrno(errno, "cannot enter /");
    AttemptPlan plan = ReadPlan(paths);
    LetUserIn(paths, plan);
    supervisor = std::make_unique<Supervisor>(paths, std::move(plan), signals);
  } catch (const Error& error) {
    ReportIn(error.what());
    throw;
  }
  ReportIn(kSupervisorReady);
  const AttemptEnd end = supervisor->Run();
  supervisor.reset();  // the logs are complete
  WriteEnd(paths, end);
  return 0;
}

}  // namespace renzan::cluster::local
