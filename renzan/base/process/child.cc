#include "renzan/base/process/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/process/pipe.h"
#include "renzan/base/process/process_table.h"

extern char** environ;

namespace renzan {
namespace {

using Step = StartError::Step;

constexpr int kExitNotStarted = 127;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool ConnectStandardStreams(const ChildOptions& options) {
  const int input = options.stdin_fd >= 0 ? options.stdin_fd : open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0) return false;
  if (options.stdin_fd < 0 && input != STDIN_FILENO) close(input);
  return (options.stdout_fd < 0 || dup2(options.stdout_fd, STDOUT_FILENO) >= 0) &&
         (options.stderr_fd < 0 || dup2(options.stderr_fd, STDERR_FILENO) >= 0);
}

bool EnterCgroups(const std::vector<int>& cgroups) {
  for (const int group : cgroups)
    if (write(group, "0", 1) != 1) return false;
  return true;
}

// Does nothing without the permission.
void RaiseOutOfMemoryScore(int wanted) {
  const int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  char text[16];
  const ssize_t length = read(file, text, sizeof(text));
  int score = 0;
  if (length > 0 && std::from_chars(text, text + length, score).ec == std::errc() &&
      score < wanted) {
    const auto [end, error] = std::to_chars(text, text + sizeof(text), wanted);
    const ssize_t written = pwrite(file, text, static_cast<size_t>(end - text), 0);
    static_cast<void>(error);
    static_cast<void>(written);
  }
  close(file);
}

void SetSignals(const ChildOptions& options) {
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    if (options.default_signals && sigismember(&*options.default_signals, signal) == 1)
      sigaction(signal, &by_default, nullptr);
  if (options.signal_mask) sigprocmask(SIG_SETMASK, &*options.signal_mask, nullptr);
}

// Runs in the child; returns only on failure: the step that failed.
Step Become(const ChildOptions& options, const std::vector<std::pair<int, rlimit>>& limits,
            const char* program, char* const* argv, char** envp, pid_t parent) {
  using Leads = ChildOptions::Leads;
  if (!EnterCgroups(options.cgroups)) return Step::kCgroup;
  if (options.leads == Leads::kSession && setsid() < 0) return Step::kSession;
  if (options.leads == Leads::kProcessGroup && setpgid(0, 0) != 0) return Step::kSession;
  if (!ConnectStandardStreams(options)) return Step::kOutput;
  // Before changing users: the other user may lack the permission.
  if (options.out_of_memory_score) RaiseOutOfMemoryScore(*options.out_of_memory_score);
  if (options.niceness) setpriority(PRIO_PROCESS, 0, *options.niceness);
  if (options.user && !BecomeUser(*options.user)) return Step::kUser;
  // After changing users, which resets it.
  prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (options.death_signal != 0 && getppid() != parent)
    _exit(kExitNotStarted);  // the parent has died
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0)
    return Step::kDirectory;
  if (options.umask) umask(*options.umask);
  SetSignals(options);
  environ = envp;  // execvp uses its PATH
  // Last: what comes before needs files and memory.
  for (const auto& [resource, limit] : limits)
    if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return Step::kLimits;
  execvp(program, argv);
  return Step::kExec;
}

}  // namespace

std::variant<pid_t, StartError> StartChild(const ChildOptions& options) {
  CHECK(!options.argv.empty());
  const std::vector<char*> argv = Pointers(options.argv);
  std::vector<char*> envp = Pointers(options.environment);
  const char* const program =
      options.program.empty() ? options.argv[0].c_str() : options.program.c_str();
  // exec closes the pipe; anything that can be read from it is the reason why exec did not happen.
  Pipe report = MakePipe();
  const std::vector<std::pair<int, rlimit>> limits = NumberedLimits(options.limits);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    Fail(ErrorCode::kOsError, "cannot start {}: fork: {}", program, std::strerror(errno));
  if (pid == 0) {
    StartError failure;
    failure.step = Become(options, limits, program, argv.data(), envp.data(), parent);
    failure.error = errno;
    const ssize_t written = write(report.write_end.get(), &failure, sizeof(failure));
    static_cast<void>(written);
    _exit(kExitNotStarted);
  }
  report.write_end.Close();
  StartError failure;
  ssize_t length = 0;
  do {
    length = read(report.read_end.get(), &failure, sizeof(failure));
  } while (length < 0 && errno == EINTR);
  if (length != static_cast<ssize_t>(sizeof(failure))) return pid;
  waitpid(pid, nullptr, 0);
  return failure;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

bool BecomeUser(const UserIds& user) {
  if (geteuid() != 0) {
    if (geteuid() == user.uid) return true;
    errno = EPERM;
    return false;
  }
  return setgroups(user.groups.size(), user.groups.data()) == 0 &&
         setresgid(user.gid, user.gid, user.gid) == 0 &&
         setresuid(user.uid, user.uid, user.uid) == 0;
}

void AdoptOrphans(bool adopt) { prctl(PR_SET_CHILD_SUBREAPER, adopt ? 1 : 0); }

bool KillChildren(const std::vector<pid_t>& spared) {
  // Children of another user, which cannot be killed, may still exit: retried every 100 ms.
  constexpr int kTries = 50;
  for (int tries = 0; tries < kTries;) {
    bool found = false, ended = false;
    // Only children: their pids are not reused before we reap them. Grandchildren become our
    // children in turn.
    for (const pid_t child : ChildrenOf(getpid())) {
      if (std::find(spared.begin(), spared.end(), child) != spared.end()) continue;
      found = true;
      const bool killed = kill(child, SIGKILL) == 0;
      if (waitpid(child, nullptr, killed ? 0 : WNOHANG) == child) ended = true;
    }
    if (!found) return true;
    if (ended) continue;
    if (++tries < kTries) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

OrphanReaper::OrphanReaper() : before_(ChildrenOf(getpid())) { AdoptOrphans(true); }

OrphanReaper::~OrphanReaper() {
  KillChildren(before_);
  AdoptOrphans(false);
}

}  // namespace renzan
