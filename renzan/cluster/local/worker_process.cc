#include "renzan/cluster/local/worker_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <system_error>

#include "renzan/base/error.h"

namespace renzan::cluster::local {
namespace {

constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;
// Of -1000 to 1000; processes have 0 unless somebody says otherwise.
constexpr int kOutOfMemoryScore = 500;
constexpr char kOutOfMemoryScoreText[] = "500";

enum class Step { kSession, kOutput, kUser, kDirectory, kExec };

// What the child says through the pipe that exec closes.
struct Refusal {
  Step step;
  int error;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void ResetSignals() {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool ConnectOutput(int output_fd) {
  const int null = open("/dev/null", O_RDONLY);
  return null >= 0 && dup2(null, STDIN_FILENO) >= 0 && (null == STDIN_FILENO || close(null) == 0) &&
         dup2(output_fd, STDOUT_FILENO) >= 0 && dup2(output_fd, STDERR_FILENO) >= 0;
}

// In a shortage of memory the kernel shall end workers, and neither the keeper nor the daemon. Only
// upwards: whoever has put us above that meant it.
void OfferToOutOfMemoryKiller() {
  const int file = open("/proc/self/oom_score_adj", O_RDWR);
  if (file < 0) return;
  char text[16];
  const ssize_t length = read(file, text, sizeof(text));
  int score = 0;
  if (length > 0 && std::from_chars(text, text + length, score).ec == std::errc() &&
      score < kOutOfMemoryScore) {
    const ssize_t written =
        pwrite(file, kOutOfMemoryScoreText, sizeof(kOutOfMemoryScoreText) - 1, 0);
    static_cast<void>(written);
  }
  close(file);
}

// In the child; returns only the step that failed.
Step BecomeWorker(const WorkerCommand& command, char* const* argv, char** envp, pid_t keeper) {
  if (setsid() < 0) return Step::kSession;
  if (!ConnectOutput(command.output_fd)) return Step::kOutput;
  OfferToOutOfMemoryKiller();  // the user would have no right to
  if (!BecomeUser(command.user)) return Step::kUser;
  // After the change of user, which forgets it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(kExitCannotExecute);  // it has died already
  if (chdir(command.working_directory.c_str()) != 0) return Step::kDirectory;
  umask(022);
  ResetSignals();
  environ = envp;  // execvp looks into its PATH
  execvp(argv[0], argv);
  return Step::kExec;
}

std::string PathOf(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) return entry.substr(5);
  return "";
}

StartFailure Explain(const Refusal& refusal, const WorkerCommand& command) {
  const std::string& program = command.argv[0];
  const char* const why = std::strerror(refusal.error);
  switch (refusal.step) {
    case Step::kSession:
    case Step::kOutput:
      return {kExitCannotExecute, fmt::format("cannot set its session and output up: {}", why)};
    case Step::kUser:
      return {kExitCannotExecute, fmt::format("cannot become user {}: {}", command.user.name, why)};
    case Step::kDirectory:
      return {kExitCannotExecute,
              fmt::format("cannot enter the working directory {} as user {}: {}",
                          command.working_directory, command.user.name, why)};
    case Step::kExec:
      break;
  }
  if (refusal.error == EACCES && program.find('/') == std::string::npos)
    return {kExitCannotExecute,
            fmt::format("user {} finds no program '{}' in PATH ({}) that they may execute: {}",
                        command.user.name, program, PathOf(command.environment), why)};
  if (refusal.error != ENOENT)
    return {kExitCannotExecute,
            fmt::format("cannot execute '{}' as user {}: {}", program, command.user.name, why)};
  if (program.find('/') != std::string::npos)
    return {kExitNotFound, fmt::format("program '{}' (seen from {}), or its interpreter, does not "
                                       "exist",
                                       program, command.working_directory)};
  return {kExitNotFound,
          fmt::format("program '{}' is not in PATH ({})", program, PathOf(command.environment))};
}

}  // namespace

std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& command) {
  CHECK(!command.argv.empty());
  // Nothing may be allocated between fork and exec.
  const std::vector<char*> argv = Pointers(command.argv);
  std::vector<char*> envp = Pointers(command.environment);
  int refusal_pipe[2];
  if (pipe2(refusal_pipe, O_CLOEXEC) != 0)
    Fail(ErrorCode::kOsError, "cannot start {}: pipe: {}", command.argv[0], std::strerror(errno));
  const pid_t keeper = getpid();
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid == 0) {
    Refusal refusal{};
    refusal.step = BecomeWorker(command, argv.data(), envp.data(), keeper);
    refusal.error = errno;
    const ssize_t said = write(refusal_pipe[1], &refusal, sizeof(refusal));
    _exit(said == sizeof(refusal) ? kExitCannotExecute : kExitNotFound);
  }
  close(refusal_pipe[1]);
  Refusal refusal{};
  const bool refused = pid > 0 && read(refusal_pipe[0], &refusal, sizeof(refusal)) ==
                                      static_cast<ssize_t>(sizeof(refusal));
  close(refusal_pipe[0]);
  if (pid < 0)
    Fail(ErrorCode::kOsError, "cannot start {}: fork: {}", command.argv[0],
         std::strerror(fork_error));
  if (!refused) return pid;
  waitpid(pid, nullptr, 0);
  return Explain(refusal, command);
}

}  // namespace renzan::cluster::local
