#include "renzan/cluster/pod/pod_run.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <variant>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/pipe_pump.h"
#include "renzan/base/process/process_end.h"
#include "renzan/base/process/process_table.h"
#include "renzan/base/process/start_failure.h"
#include "renzan/cluster/contract/log_writer.h"
#include "renzan/cluster/contract/run_status.h"
#include "renzan/cluster/contract/stop_notice.h"
#include "renzan/cluster/pod/checkpoint_requests.h"
#include "renzan/cluster/pod/last_line.h"
#include "renzan/cluster/pod/pod_settings.h"
#include "renzan/cluster/pod/termination_message.h"

namespace renzan::cluster::pod {
namespace {

// Writes all of it as long as somebody reads: then a command that keeps printing is not blocked.
void WriteFully(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable = {fd, POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

// The log size for output that is uploaded, as on one machine.
constexpr int64_t kLogBytes = 64 << 20;
constexpr int kLogFiles = 4;
constexpr double kSecondsToEnd = 2;  // left before SIGKILL

std::optional<std::string> ReadStatus(const std::string& run_dir) {
  const std::string path = run_dir + "/status.json";
  std::error_code none;
  try {
    if (!std::filesystem::is_regular_file(path, none) || FileSize(path) > kMaxStatusBytes)
      return std::nullopt;
    return ReadFile(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

ContainerEnd StoppedBefore(int signal) {
  ContainerEnd end{
      .exit_code = signal == SIGINT ? 128 + SIGINT : static_cast<int>(ErrorCode::kTempFail),
      .message = fmt::format("stopped by signal {} ({}) before the command started", signal,
                             strsignal(signal))};
  LogInfo("{}", end.message);
  return end;
}

class Container {
 public:
  explicit Container(const PodRunOptions& options)
      : options_(options),
        settings_(ReadPodSettings(options.environment)),
        // Children of a shell that has become this program.
        children_before_(ChildrenOf(getpid())),
        // Before there are threads. Queued even if ignored: nothing else can end a container.
        signals_({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) {
    std::signal(SIGPIPE, SIG_IGN);
    AdoptOrphans(true);
    if (options.grace_seconds) settings_.grace_seconds = options.grace_seconds;
  }

  ContainerEnd Run() {
    if (settings_.world_size > 1 && !settings_.master_addr.empty() &&
        options_.master.limit_seconds > 0) {
      const int signal =
          WaitForMaster(settings_.master_addr, options_.master, options_.resolve, signals_);
      if (signal != 0) return StoppedBefore(signal);
    }
    PrepareRunDirectory();
    while (const int signal = signals_.Take())
      if (IsStopSignal(signal)) return StoppedBefore(signal);
    return RunCommand();
  }

  // After Run(). Throws Error.
  void Upload() {
    if (!logs_) return;  // there is nowhere to upload to, or no command has run
    const auto upload = [&](const std::string& path, const std::string& name) {
      options_.upload(path, settings_.upload_to + "/" + name, [&] { return IsTimeToEnd(); });
    };
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(logs_->path(), none))
      upload(file.path(),
             fmt::format("attempt-{}/{}", settings_.attempt, file.path().filename().string()));
    if (settings_.rank == 0) upload(settings_.run_dir, "run");
    if (settings_.artifacts.empty()) return;
    if (std::filesystem::exists(settings_.artifacts, none)) {
      upload(settings_.artifacts, "artifacts");
    } else {
      LogInfo("there are no artifacts: {} does not exist", settings_.artifacts);
    }
  }

 private:
  // If the container is killed, its exit status is not the command's.
  bool IsTimeToEnd() {
    while (const int signal = signals_.Take())
      if (IsStopSignal(signal) && !killed_at_) SetDeadline();
    return killed_at_ && SystemClock().MonotonicSeconds() > *killed_at_ - kSecondsToEnd;
  }

  void SetDeadline() {
    if (settings_.grace_seconds)
      killed_at_ = SystemClock().MonotonicSeconds() + *settings_.grace_seconds;
  }

  void PrepareRunDirectory() {
    if (settings_.run_dir.empty()) {
      settings_.run_dir = private_run_dir_.emplace().path();
    } else {
      CreateDirectories(settings_.run_dir);
    }
    RemoveStopNotice(NoticeDirectory());  // of an earlier attempt
    status_before_ = ReadStatus(settings_.run_dir);
  }

  // The run directory with links resolved, because writing a notice does not follow links.
  std::string NoticeDirectory() const {
    std::error_code error;
    const auto path = std::filesystem::canonical(settings_.run_dir, error);
    return error ? settings_.run_dir : path.string();
  }

  ContainerEnd RunCommand() {
    LastLine last_line;
    std::optional<LogWriter> log;
    if (!settings_.upload_to.empty())
      log.emplace(logs_.emplace() / fmt::format("worker-{}.log", settings_.rank), kLogBytes,
                  kLogFiles, geteuid(), getegid());
    PipePump pump;
    Descriptor to_pump, stdout_to_pump;
    if (log || isatty(options_.stderr_fd) == 0)
      to_pump = pump.Add([&](std::string_view piece) {
        WriteFully(options_.stderr_fd, piece);
        last_line.Add(piece);
        if (log) log->Write(piece);
      });
    if (log)
      stdout_to_pump = pump.Add([&](std::string_view piece) {
        WriteFully(options_.stdout_fd, piece);
        log->Write(piece);
      });
    CheckpointRequests requests(settings_.pod_info);
    const ChildOptions child = {
        .argv = options_.command,
        .environment = CommandEnvironment(),
        .stdout_fd = stdout_to_pump ? stdout_to_pump.get() : options_.stdout_fd,
        .stderr_fd = to_pump ? to_pump.get() : options_.stderr_fd,
        .leads = ChildOptions::Leads::kSession,
        .signal_mask = SignalSet({}),
        .default_signals = AllSignals()};
    const std::variant<pid_t, StartError> started = StartChild(child);
    if (const auto* error = std::get_if<StartError>(&started)) {
      const StartFailure failure = ExplainStartError(*error, child, std::to_string(geteuid()));
      LogError("{}", failure.message);
      return {.exit_code = failure.exit_code, .message = failure.message};
    }
    to_pump.Close();
    stdout_to_pump.Close();
    pump.Start();
    const ProcessEnd end = Watch(std::get<pid_t>(started), requests);
    if (!KillChildren(children_before_))
      LogWarning("cannot kill processes that the command left behind: they belong to another user");
    pump.Finish();
    return {.exit_code = end.ShellStatus(),
            .signal = end.signal,
            .message = DescribeContainerEnd(end, StatusSinceStart(), last_line.text())};
  }

  std::vector<std::string> CommandEnvironment() const {
    std::vector<std::string> environment = options_.environment;
    SetVariable(environment, "RENZAN_RUN_DIR", settings_.run_dir);
    if (options_.grace_seconds)
      SetVariable(environment, "RENZAN_GRACE_SECONDS", fmt::format("{}", *options_.grace_seconds));
    return environment;
  }

  std::optional<std::string> StatusSinceStart() const {
    std::optional<std::string> status = ReadStatus(settings_.run_dir);
    return status == status_before_ ? std::nullopt : status;
  }

  // Returns when the command has ended.
  ProcessEnd Watch(pid_t pid, CheckpointRequests& requests) {
    for (;;) {
      pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {requests.fd(), POLLIN, 0}};
      poll(fds, 2, static_cast<int>(std::ceil(options_.seconds_between_looks * 1000)));
      // Before Reap(): the signal of a command that ends later wakes us again.
      std::vector<int> received;
      while (const int signal = signals_.Take()) received.push_back(signal);
      // Before signals are sent, so that none goes to a reused process id.
      if (const std::optional<ProcessEnd> end = Reap(pid)) return *end;
      for (const int signal : received) PassOn(signal, pid);
      if (requests.Take()) RequestCheckpoint(pid);
    }
  }

  // Also reaps orphans. Returns how the command ended, if it has.
  static std::optional<ProcessEnd> Reap(pid_t command) {
    std::optional<ProcessEnd> end;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == command && !end) end = EndOf(status);
    return end;
  }

  void PassOn(int signal, pid_t pid) {
    if (signal == SIGCHLD) return;
    if (signal == SIGUSR1) return RequestCheckpoint(pid);
    if (signal == SIGTERM) {
      // Only the first deadline counts. The command may have restored the default action by now.
      if (told_to_stop_ && !HandlesOrIgnores(pid, SIGTERM)) return;
      if (!told_to_stop_) {
        SetDeadline();
        WriteDeadline();
      }
      told_to_stop_ = true;
    }
    kill(pid, signal);
  }

  // Before the signal, whose handler may read the file.
  void WriteDeadline() {
    if (!settings_.grace_seconds) return;
    try {
      WriteStopNotice(
          NoticeDirectory(),
          {*settings_.grace_seconds, SystemClock().UnixSeconds() + *settings_.grace_seconds},
          geteuid(), getegid(), std::to_string(settings_.rank));
    } catch (const Error& error) {
      LogWarning("{}", error.what());  // the command still has RENZAN_GRACE_SECONDS
    }
  }

  static void RequestCheckpoint(pid_t pid) {
    if (HandlesOrIgnores(pid, SIGUSR1)) {
      kill(pid, SIGUSR1);
    } else {
      LogInfo("no checkpoint requested, because the command does not handle SIGUSR1");
    }
  }

  const PodRunOptions& options_;
  PodSettings settings_;
  const std::vector<pid_t> children_before_;
  const SignalQueue signals_;
  std::optional<TemporaryDirectory> private_run_dir_;
  std::optional<TemporaryDirectory> logs_;  // of the command's output, if it is uploaded
  std::optional<std::string> status_before_;
  bool told_to_stop_ = false;
  std::optional<double> killed_at_;  // monotonic; nothing: not killed, or unknown when
};

}  // namespace

int PodRun(const PodRunOptions& options) {
  CHECK(!options.command.empty());
  const std::string log = TerminationLogOf(options.environment);
  try {
    Container container(options);
    const ContainerEnd end = container.Run();
    WriteTerminationMessage(log, end);
    try {
      container.Upload();
    } catch (const Error& error) {
      LogError("{}", error.what());
      if (end.exit_code == 0) throw;  // its output would be lost silently
    }
    return end.exit_code;
  } catch (const Error& error) {
    WriteTerminationMessage(log, {.exit_code = error.exit_status(), .message = error.what()});
    throw;
  }
}

}  // namespace renzan::cluster::pod
