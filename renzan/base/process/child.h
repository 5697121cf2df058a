#pragma once

// Starts a program as a child process, and ends children and whatever they leave behind. Between
// fork and exec nothing is allocated, so a process with many threads may do it too.

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace renzan {

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary, with gid
};

struct ChildOptions {
  std::vector<std::string> argv;
  std::string program;                   // looked for in the PATH of `environment`; empty: argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_directory;         // empty: ours

  // stdin is /dev/null. Negative: ours.
  int stdout_fd = -1, stderr_fd = -1;

  // It leads a process group, so that a terminal's Ctrl-C reaches it only through us, or a session.
  enum class Leads { kProcessGroup, kSession };
  Leads leads = Leads::kProcessGroup;
  int death_signal = SIGKILL;  // what it gets should we die; 0: it lives on

  // None: as ours.
  std::optional<sigset_t> signal_mask;
  std::optional<sigset_t> default_signals;  // not ignored, even if we ignore them
  std::optional<mode_t> umask;
  std::optional<UserIds> user;  // other than ours only if we are root
  // In a shortage of memory the kernel ends those with high scores first: of -1000 to 1000. Only
  // ever raised.
  std::optional<int> out_of_memory_score;
};

// Why a program could not take over its process: the errno of the step that failed.
struct StartRefusal {
  enum class Step { kSession, kOutput, kUser, kDirectory, kExec };
  Step step = Step::kExec;
  int error = 0;
};

// Returns the process id once the program has taken over the process, or why it could not; then
// nothing is left. Throws Error kOsError when the machine has no room for one more process.
std::variant<pid_t, StartRefusal> StartChild(const ChildOptions& options);

// Becomes that user for good. Allocates nothing. A process that is not root can only stay who it
// is. False with errno set when it may not.
bool BecomeUser(const UserIds& user);

// From now on the processes that a child of ours leaves behind become our children.
void AdoptOrphans(bool adopt);

// Kills and reaps every child of this process but `spared`, and those that become ours when their
// parents die. Nobody else may reap meanwhile. False: some are another user's and go on.
bool KillChildren(const std::vector<pid_t>& spared = {});

// While it lives, orphans are adopted. The destructor kills every child that has come since the
// constructor, and theirs.
class OrphanSupervisor {
 public:
  OrphanSupervisor();
  ~OrphanSupervisor();
  OrphanSupervisor(const OrphanSupervisor&) = delete;
  OrphanSupervisor& operator=(const OrphanSupervisor&) = delete;

 private:
  std::vector<pid_t> before_;
};

}  // namespace renzan
