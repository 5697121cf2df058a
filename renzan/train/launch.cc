#include "renzan/train/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/train/mpirun_output.h"

extern char** environ;

namespace renzan {
namespace {

using std::chrono::steady_clock;

// After SIGTERM, which a worker may answer with a last checkpoint that it cannot finish alone.
constexpr double kSecondsUntilKill = 2;
// Deaths this close together are one event: the cause is picked among them.
constexpr double kSettleSeconds = 0.2;
constexpr int kExitCannotExecute = 127;

struct Worker {
  std::string name;  // "worker 2"
  pid_t pid = -1;
  bool running = true;
  int status = 0;  // of waitpid
};

// While it lives, the signals that concern the workers wait to be fetched.
class SignalQueue {
 public:
  SignalQueue() {
    sigemptyset(&mask_);
    for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&mask_, signal);
    // nohup ignores SIGHUP; so must we.
    struct sigaction hangup = {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&mask_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &mask_, &before_);
    fd_ = signalfd(-1, &mask_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) Fail(ErrorCode::kOsError, "signalfd: {}", std::strerror(errno));
  }
  ~SignalQueue() {
    close(fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // The next signal; 0 after `seconds`, or earlier if `other_fd` (-1 for none) can be read.
  int Next(double seconds, int other_fd) const {
    pollfd fds[] = {{fd_, POLLIN, 0}, {other_fd, POLLIN, 0}};
    poll(fds, 2, static_cast<int>(seconds * 1000));
    signalfd_siginfo info;
    if (read(fd_, &info, sizeof(info)) != sizeof(info)) return 0;
    return static_cast<int>(info.ssi_signo);
  }

  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t mask_, before_;
  int fd_ = -1;
};

// A port of the loopback interface that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!bound)
    Fail(ErrorCode::kOsError, "cannot find a free port on 127.0.0.1: {}", std::strerror(error));
  return ntohs(address.sin_port);
}

// The environment without what another launcher left in it, plus `added` ("NAME=value").
std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> result = added;
  const auto is_replaced = [](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    return name == "RANK" || name == "WORLD_SIZE" || name == "LOCAL_RANK" ||
           name == "MASTER_ADDR" || name == "MASTER_PORT";
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry)) result.emplace_back(*entry);
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Starts `program` in a process group of its own, so that a terminal's Ctrl-C reaches it through us
// and only once. `death_signal` is what it gets should we die.
Worker Start(const std::string& name, const std::string& program,
             const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
             int death_signal, const SignalQueue& signals, int stderr_fd = STDERR_FILENO) {
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const sigset_t mask = signals.mask_before();
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) Fail(ErrorCode::kOsError, "cannot start {}: fork: {}", name, std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != launcher) _exit(kExitCannotExecute);  // we are too late: it has died already
    if (const int null = open("/dev/null", O_RDONLY); null > 0) dup2(null, STDIN_FILENO);
    if (stderr_fd != STDERR_FILENO) dup2(stderr_fd, STDERR_FILENO);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    execvpe(program.c_str(), argv.data(), envp.data());
    _exit(kExitCannotExecute);
  }
  setpgid(pid, pid);  // here too, so that it is done when either of us goes on
  return {name, pid};
}

// Processes that `pid` started and that still live.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid, pid));
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

bool ExecutableInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (access(fmt::format("{}/{}", rest.substr(0, colon), program).c_str(), X_OK) == 0)
      return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

std::string ThisProgram() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0)
    Fail(ErrorCode::kOsError, "cannot read /proc/self/exe: {}", std::strerror(errno));
  return {path, static_cast<size_t>(length)};
}

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

// Shows mpirun's stderr while it comes.
class OutputRelay {
 public:
  OutputRelay() {
    if (pipe2(fds_, O_CLOEXEC | O_NONBLOCK) != 0)
      Fail(ErrorCode::kOsError, "pipe: {}", std::strerror(errno));
    // mpirun is to wait for us rather than lose lines.
    fcntl(fds_[1], F_SETFL, 0);
  }
  ~OutputRelay() {
    close(fds_[0]);
    CloseWriteEnd();
  }
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  int read_fd() const { return ended_ ? -1 : fds_[0]; }
  int write_fd() const { return fds_[1]; }
  void CloseWriteEnd() {
    if (fds_[1] >= 0) close(std::exchange(fds_[1], -1));
  }

  void Drain() {
    char buffer[4096];
    ssize_t length;
    while ((length = read(fds_[0], buffer, sizeof(buffer))) > 0)
      Show(output_.Feed({buffer, static_cast<size_t>(length)}));
    if (length == 0) ended_ = true;
  }

  const std::optional<MpiWorkerEnd>& Finish() {
    Drain();
    Show(output_.Finish());
    return output_.worker_end();
  }

 private:
  static void Show(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

  int fds_[2] = {-1, -1};
  bool ended_ = false;
  MpirunOutput output_;
};

// Waits for the workers, passing signals on.
class Supervisor {
 public:
  // With `mpirun` the only process is mpirun itself, whose children are the workers.
  Supervisor(std::vector<Worker> workers, OutputRelay* mpirun, const SignalQueue& signals,
             double grace_seconds)
      : workers_(std::move(workers)),
        mpirun_(mpirun),
        signals_(signals),
        grace_seconds_(grace_seconds) {}

  // Whatever goes wrong here, nobody is left behind.
  ~Supervisor() { Signal(SIGKILL); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int Run() {
    while (AnyRunning()) {
      const int signal = signals_.Next(SecondsUntilNextStep(), mpirun_ ? mpirun_->read_fd() : -1);
      if (signal != 0 && signal != SIGCHLD) PassOn(signal == SIGHUP ? SIGTERM : signal);
      if (mpirun_) mpirun_->Drain();
      Reap();
      EndTheRest();
    }
    const std::optional<MpiWorkerEnd> end = mpirun_ ? mpirun_->Finish() : std::nullopt;
    if (!cause_) return stopped_on_request_ ? static_cast<int>(ErrorCode::kTempFail) : 0;
    if (end)
      return Report(fmt::format("worker {}", end->rank), end->signal, end->exit_status, true);
    return Report(fmt::format("{} (pid {})", cause_->name, cause_->pid),
                  WIFSIGNALED(cause_->status) ? WTERMSIG(cause_->status) : 0,
                  WEXITSTATUS(cause_->status), workers_.size() > 1);
  }

 private:
  bool AnyRunning() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
  }

  void Reap() {
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

  double SecondsSinceFailure() const {
    return std::chrono::duration<double>(steady_clock::now() - *first_failure_).count();
  }

  double SecondsUntilNextStep() const {
    if (!first_failure_) return 60;  // SIGCHLD ends the wait earlier
    const double next = terminated_ ? grace_seconds_ + kSecondsUntilKill : grace_seconds_;
    return std::clamp(next - SecondsSinceFailure(), 0.01, 1.0);
  }

  void EndTheRest() {
    if (!first_failure_) return;
    if (!terminated_ && SecondsSinceFailure() >= grace_seconds_) {
      terminated_ = true;
      Signal(SIGTERM);
    }
    if (SecondsSinceFailure() >= grace_seconds_ + kSecondsUntilKill) Signal(SIGKILL);
  }

  // To the process groups of those that still run.
  void Signal(int signal) const {
    for (const Worker& worker : workers_)
      if (worker.running) kill(-worker.pid, signal);
  }

  // mpirun answers SIGTERM by killing its workers a second later, which is no time for a
  // checkpoint, so they get the signal directly.
  void PassOn(int signal) const {
    const std::vector<pid_t> children =
        mpirun_ ? ChildrenOf(workers_[0].pid) : std::vector<pid_t>();
    if (children.empty()) return Signal(signal);
    for (pid_t child : children) kill(child, signal);
  }

  std::vector<Worker> workers_;
  OutputRelay* mpirun_;
  const SignalQueue& signals_;
  double grace_seconds_;
  std::optional<steady_clock::time_point> first_failure_;
  std::optional<Worker> cause_;
  bool stopped_on_request_ = false;
  bool terminated_ = false;
};

int LaunchProcesses(const LaunchOptions& options, const std::string& program) {
  const SignalQueue signals;
  const std::string port = std::to_string(FreePort());
  std::vector<Worker> workers;
  try {
    for (int rank = 0; rank < options.workers; ++rank) {
      workers.push_back(
          Start(fmt::format("worker {}", rank), program, options.argv,
                Environment({fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
                             fmt::format("WORLD_SIZE={}", options.workers), "MASTER_ADDR=127.0.0.1",
                             "MASTER_PORT=" + port}),
                SIGKILL, signals));
    }
  } catch (const Error&) {
    Supervisor(std::move(workers), nullptr, signals, 0);  // ends those that run
    throw;
  }
  return Supervisor(std::move(workers), nullptr, signals, options.grace_seconds).Run();
}

int LaunchMpirun(const LaunchOptions& options, const std::string& program) {
  if (!ExecutableInPath("mpirun"))
    Fail(ErrorCode::kUnavailable,
         "backend mpi needs mpirun, which is not in PATH: install it (Debian: openmpi-bin) or use "
         "backend gloo");
  // All workers are on this host: shared memory only, and none of the probing for networks.
  std::vector<std::string> arguments = {
      "mpirun",          "-n",        std::to_string(options.workers),
      "--oversubscribe", "--bind-to", "none",
      "--mca",           "pml",       "ob1",
      "--mca",           "btl",       "self,vader"};
  if (options.workers > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)))
    arguments.insert(arguments.end(), {"--mca", "mpi_yield_when_idle", "1"});
  arguments.push_back(program);
  if (!options.argv.empty())
    arguments.insert(arguments.end(), options.argv.begin() + 1, options.argv.end());
  std::vector<std::string> added;
  if (geteuid() == 0) added = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

  const SignalQueue signals;
  OutputRelay relay;
  // SIGTERM lets mpirun end its workers before itself; should mpirun be killed, they notice.
  Worker mpirun =
      Start("mpirun", "mpirun", arguments, Environment(added), SIGTERM, signals, relay.write_fd());
  relay.CloseWriteEnd();
  return Supervisor({mpirun}, &relay, signals, options.grace_seconds).Run();
}

}  // namespace

int LaunchLocalWorkers(const LaunchOptions& options) {
  CHECK(options.workers >= 1);
  const std::string program = options.program.empty() ? ThisProgram() : options.program;
  if (options.backend == "mpi") return LaunchMpirun(options, program);
  if (options.backend != "gloo" && options.backend != "auto")
    Fail(ErrorCode::kConfig, "backend '{}' cannot carry {} workers: use gloo or mpi",
         options.backend, options.workers);
  return LaunchProcesses(options, program);
}

}  // namespace renzan
