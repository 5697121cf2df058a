#pragma once

// Starts programs as child processes, and kills children and the orphans they leave. Nothing is
// allocated between fork and exec, so multithreaded processes may use it.

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "renzan/base/resource_limits.h"

namespace renzan {

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary groups, including gid
};

struct ChildOptions {
  std::vector<std::string> argv;
  std::string program;                   // looked up in the PATH of `environment`; empty: argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_directory;         // empty: inherited

  int stdin_fd = -1;                   // negative: /dev/null
  int stdout_fd = -1, stderr_fd = -1;  // negative: inherited

  // The child leads its own process group (so that Ctrl-C in a terminal reaches it only through us)
  // or its own session. One that reads from our terminal must stay in our group.
  enum class Leads { kNothing, kProcessGroup, kSession };
  Leads leads = Leads::kProcessGroup;
  int death_signal = SIGKILL;  // sent to it if this process dies; 0: none

  // Unset: inherited.
  std::optional<sigset_t> signal_mask;
  std::optional<sigset_t> default_signals;  // reset to the default action
  std::optional<mode_t> umask;
  std::optional<UserIds> user;  // another user only if we are root
  ResourceLimits limits;        // those not named: inherited
  // From -20 to 19. Stays as it is where we may not lower it.
  std::optional<int> niceness;
  // Files cgroup.procs of control groups that it enters before everything else.
  std::vector<int> cgroups;
  // oom_score_adj, -1000 to 1000: the OOM killer prefers high scores. Only ever raised.
  std::optional<int> out_of_memory_score;
};

// Why a program could not be started: the failed step and its errno.
struct StartError {
  enum class Step { kCgroup, kSession, kOutput, kUser, kDirectory, kLimits, kExec };
  Step step = Step::kExec;
  int error = 0;
};

// Returns the pid once exec has succeeded, or the reason why it could not; then no process is left.
// Throws Error kOsError if the OS cannot create a process.
std::variant<pid_t, StartError> StartChild(const ChildOptions& options);

// The environment of this process.
std::vector<std::string> OwnEnvironment();

// Switches to that user permanently. Allocates nothing. Without root it succeeds only for the
// current user; otherwise returns false with errno set.
bool BecomeUser(const UserIds& user);

// Makes this process a subreaper: orphaned descendants become its children.
void AdoptOrphans(bool adopt);

// Kills and reaps every child of this process except `spared`, including those it adopts meanwhile.
// No other code may reap at the same time. False if some belong to another user and keep running.
bool KillChildren(const std::vector<pid_t>& spared = {});

// Adopts orphans during its lifetime. The destructor kills all children created or adopted since
// the constructor, and their descendants.
class OrphanReaper {
 public:
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

 private:
  std::vector<pid_t> before_;
};

}  // namespace renzan
