// The supervisor of one attempt: starts the workers, monitors them and records how they ended.

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_table.h"
#include "renzan/base/process/signals.h"
#include "renzan/cluster/contract/stop_notice.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_directory.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/disk_use.h"
#include "renzan/cluster/local/supervisor/gang.h"
#include "renzan/cluster/local/supervisor/gang_state.h"
#include "renzan/cluster/local/supervisor/memory_use.h"
#include "renzan/cluster/local/supervisor/spare_file.h"
#include "renzan/cluster/local/supervisor/supervisor_process.h"

namespace renzan::cluster::local {
namespace {

// The time between attempts to write a file when the disk is full.
constexpr double kRetrySeconds = 1;
constexpr double kLongestWaitSeconds = 60;
constexpr double kNotSoon = std::numeric_limits<double>::infinity();
// What was removed from the directory is put back once nothing was removed for so long.
constexpr double kQuietSeconds = 0.2;
// The time between checks of memory use.
constexpr double kMemorySeconds = 1;
// The job's files are looked at a few at a time. Between two measurements is a pause that is many
// times as long as these took.
constexpr int kFilesAtOnce = 1000;
constexpr double kBetweenFilesSeconds = 0.05;
constexpr double kDiskPausePerSecond = 50, kLeastDiskPause = 1, kLongestDiskPause = 60;

void IgnoreSignals() {
  // SIGXFSZ: a log that hits a file size limit is treated like a full disk.
  for (const int signal : {SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

class Supervisor {
 public:
  Supervisor(const AttemptPaths& paths, const AttemptPlan& plan, AttemptDirectory& directory,
             const SignalQueue& signals)
      : paths_(paths),
        plan_(plan),
        signals_(signals),
        directory_(directory),
        gang_(paths_, plan_),
        limits_memory_(plan_.enforce_memory &&
                       std::any_of(plan_.workers.begin(), plan_.workers.end(),
                                   [](const auto& worker) { return worker.memory_mib > 0; })) {}

  // Returns when all workers and the processes that they left behind have ended.
  AttemptEnd Run() {
    const int64_t started_ms = SystemClock().UnixMs();
    const double began = SystemClock().MonotonicSeconds();
    AttemptEnd end;
    if (const std::optional<StartFailure> failure = gang_.Start()) {
      end = EndWithoutStart(*failure);
    } else {
      end = Watch(started_ms);
    }
    if (!gang_.out_of_memory().empty()) end.message += "; " + gang_.out_of_memory();
    if (gang_.lost_output_bytes() > 0)
      end.message += fmt::format("; {} bytes of its output were lost", gang_.lost_output_bytes());
    end.started_ms = started_ms;
    end.ended_ms = SystemClock().UnixMs();
    end.ran_ms = static_cast<int64_t>((SystemClock().MonotonicSeconds() - began) * 1000);
    return end;
  }

 private:
  AttemptEnd EndWithoutStart(const StartFailure& failure) const {
    AttemptEnd end{.by = failure.is_machines ? EndedBy::kNeverStarted : EndedBy::kCannotStart,
                   .exit_code = failure.exit_code,
                   .message = failure.message};
    end.workers.resize(plan_.workers.size(), {.exit_code = failure.exit_code});
    return end;
  }

  AttemptEnd Watch(int64_t started_ms) {
    const std::string start = StartToJson({.worker_pids = gang_.pids(), .started_ms = started_ms});
    unwritten_start_ = start;
    GangState state(plan_, SystemClock().MonotonicSeconds());
    for (bool first = true; state.AnyRunning(); first = false) {
      if (!first) Wait(state);
      const double now = SystemClock().MonotonicSeconds();
      // Before Reap(): the signal of a worker that ends later wakes us again.
      const bool terminated = Terminated();
      // Before signals are sent, so that none goes to a reused process id.
      state.WorkersEnded(gang_.Reap(), now);
      if (terminated) state.StopRequested(plan_.grace_seconds, now);
      if (directory_.TakeRemovals()) restore_at_ = now + kQuietSeconds;
      if (now >= restore_at_ && RestoreDirectory()) unwritten_start_ = start;
      for (const AttemptRequest& request : directory_.inbox().Take()) Handle(request, now, state);
      if (limits_memory_ && now >= check_memory_at_) CheckMemory(now, state);
      if (plan_.max_disk_mib > 0 && now >= check_disk_at_) CheckDisk(now, state);
      const std::vector<GangState::Signal> signals = state.Step(now);
      WriteDeadline(state, now);
      for (const GangState::Signal& signal : signals) gang_.Send(signal);
      if (!unwritten_start_.empty() && now >= write_start_at_) WriteStart();
    }
    gang_.KillLeftovers();
    return state.Result();
  }

  bool RestoreDirectory() {
    restore_at_ = kNotSoon;
    try {
      return directory_.RestoreIfRemoved();
    } catch (const Error& error) {
      LogWarning("{}; trying again", error.what());
      restore_at_ = SystemClock().MonotonicSeconds() + kRetrySeconds;
      return false;
    }
  }

  // Whether the supervisor got SIGTERM or SIGINT since the last call.
  bool Terminated() const {
    bool terminated = false;
    while (const int signal = signals_.Take()) terminated |= signal != SIGCHLD;
    return terminated;
  }

  void Wait(const GangState& state) {
    double seconds = unwritten_start_.empty() ? kLongestWaitSeconds : kRetrySeconds;
    if (const std::optional<double> next = state.NextStep())
      seconds = std::clamp(*next - SystemClock().MonotonicSeconds(), 0.0, seconds);
    seconds = std::clamp(restore_at_ - SystemClock().MonotonicSeconds(), 0.0, seconds);
    if (limits_memory_)
      seconds = std::clamp(check_memory_at_ - SystemClock().MonotonicSeconds(), 0.0, seconds);
    if (plan_.max_disk_mib > 0)
      seconds = std::clamp(check_disk_at_ - SystemClock().MonotonicSeconds(), 0.0, seconds);
    pollfd fds[] = {{signals_.fd(), POLLIN, 0},
                    {directory_.inbox().fd(), POLLIN, 0},
                    {directory_.fd(), POLLIN, 0}};
    poll(fds, std::size(fds), static_cast<int>(std::ceil(seconds * 1000)));
  }

  void CheckMemory(double now, GangState& state) {
    const std::vector<std::vector<pid_t>> processes = ProcessesOf(gang_.pids());
    for (int rank = 0; rank < static_cast<int>(plan_.workers.size()); ++rank) {
      const int64_t limit_mib = plan_.workers[static_cast<size_t>(rank)].memory_mib;
      if (limit_mib == 0 || !state.running(rank)) continue;
      const std::vector<pid_t>& own = processes[static_cast<size_t>(rank)];
      // The exact value is expensive.
      if (MaxMemoryKib(own) <= limit_mib * 1024) continue;
      const int64_t used_kib = MemoryKib(own);
      if (used_kib > limit_mib * 1024) state.MemoryExceeded(rank, (used_kib + 1023) / 1024, now);
    }
    check_memory_at_ = SystemClock().MonotonicSeconds() + kMemorySeconds;
  }

  // A job is over its limit as soon as a part of its files is.
  void CheckDisk(double now, GangState& state) {
    if (!disk_use_)
      disk_use_.emplace(std::filesystem::path(paths_.directory).parent_path().string());
    const bool complete = disk_use_->Advance(kFilesAtOnce);
    const int64_t used_mib = (disk_use_->bytes() + (1 << 20) - 1) >> 20;
    const double end = SystemClock().MonotonicSeconds();
    measured_seconds_ += end - now;
    check_disk_at_ = end + kBetweenFilesSeconds;
    if (used_mib > plan_.max_disk_mib) return state.DiskExceeded(used_mib, now);
    if (!complete) return;
    check_disk_at_ = end + std::clamp(kDiskPausePerSecond * std::exchange(measured_seconds_, 0),
                                      kLeastDiskPause, kLongestDiskPause);
    disk_use_.reset();
  }

  void Handle(const AttemptRequest& request, double now, GangState& state) {
    switch (request.kind) {
      case AttemptRequest::Kind::kStop:
        return state.StopRequested(request.grace_seconds, now);
      case AttemptRequest::Kind::kNodeFailed:
        return state.NodeFailed(request.node, now);
      case AttemptRequest::Kind::kTimeLimit:
        return state.TimeLimitChanged(request.timeout_ms);
      case AttemptRequest::Kind::kCheckpoint:
        for (int rank = 0; rank < static_cast<int>(plan_.workers.size()); ++rank)
          if (state.running(rank)) gang_.RequestCheckpoint(rank);
    }
  }

  // Before the signal, whose handler may read the file.
  void WriteDeadline(const GangState& state, double now) {
    if (!state.kill_at() || state.kill_at() == written_deadline_ || plan_.run_dir.empty()) return;
    written_deadline_ = state.kill_at();
    const double seconds = std::max(0.0, *written_deadline_ - now);
    try {
      WriteStopNotice(plan_.run_dir, {seconds, SystemClock().UnixSeconds() + seconds}, plan_.uid,
                      plan_.gid);
    } catch (const Error& error) {
      LogWarning("{}", error.what());  // workers still have RENZAN_GRACE_SECONDS
    }
  }

  // A failure, too, makes and removes a file in the directory that we watch, which wakes us.
  void WriteStart() {
    try {
      WriteFileAtomically(paths_.started, unwritten_start_);
      unwritten_start_.clear();
    } catch (const Error& error) {
      LogWarning("{}; trying again", error.what());
      write_start_at_ = SystemClock().MonotonicSeconds() + kRetrySeconds;
    }
  }

  const AttemptPaths& paths_;
  const AttemptPlan& plan_;
  const SignalQueue& signals_;
  AttemptDirectory& directory_;
  Gang gang_;
  const bool limits_memory_;
  double check_memory_at_ = 0;       // monotonic seconds
  std::optional<DiskUse> disk_use_;  // while it is being measured
  double measured_seconds_ = 0;      // this took so far
  double check_disk_at_ = 0;
  double restore_at_ = kNotSoon;
  std::optional<double> written_deadline_;
  std::string unwritten_start_;  // empty once written
  double write_start_at_ = 0;    // not before
};

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

void ReportToDaemon(std::string_view text) {
  // EPIPE: the daemon has died; the job continues.
  if (write(kSupervisorReadyDescriptor, text.data(), text.size()) < 0 && errno != EPIPE)
    LogWarning("cannot report to the daemon: {}", std::strerror(errno));
  close(kSupervisorReadyDescriptor);
}

// Retries while the disk is full, if the spare file is gone: without the file, the attempt would
// count as lost and be rerun.
void WriteEnd(const AttemptPaths& paths, AttemptDirectory& directory, const AttemptEnd& end) {
  for (;;) {
    try {
      directory.RestoreIfRemoved();
      return WriteEvenIfFull(paths.end, EndToJson(end), {paths.spare_end});
    } catch (const Error& error) {
      // Removed together with the directory of all jobs: nobody needs the result.
      if (!FileExists(paths.directory)) throw;
      LogWarning("{}; trying again", error.what());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kRetrySeconds));
  }
}

}  // namespace

int SuperviseAttempt(const std::string& directory) {
  const AttemptPaths paths(directory);
  std::unique_ptr<FileLock> lock = TakeLockOver(paths);
  // Until the end, so that SIGTERM cannot prevent end.json from being written.
  const SignalQueue signals({SIGTERM, SIGINT, SIGCHLD});
  IgnoreSignals();
  AttemptPlan plan;
  std::unique_ptr<AttemptDirectory> attempt;
  std::unique_ptr<Supervisor> supervisor;
  try {
    umask(077);
    AdoptOrphans(true);
    if (chdir("/") != 0) FailErrno(errno, "cannot enter /");
    plan = ReadPlan(paths);
    GrantAccess(paths, plan);
    attempt = std::make_unique<AttemptDirectory>(paths, plan, std::move(lock));
    supervisor = std::make_unique<Supervisor>(paths, plan, *attempt, signals);
  } catch (const Error& error) {
    ReportToDaemon(error.what());
    throw;
  }
  ReportToDaemon(kSupervisorReady);
  const AttemptEnd end = supervisor->Run();
  supervisor.reset();  // completes the logs
  WriteEnd(paths, *attempt, end);
  RemoveSpares(paths);
  return 0;
}

}  // namespace renzan::cluster::local
