#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <variant>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/signals.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

// Runs a program as that user if we are root, otherwise as the current user. `death_signal`: sent
// to it when the calling thread ends; 0: none.
pid_t StartTool(std::vector<std::string> argv, std::optional<UserIds> user, int death_signal) {
  const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null) FailErrno(errno, "cannot open /dev/null");
  if (::geteuid() != 0) user.reset();
  const std::string program = argv[0];
  const std::variant<pid_t, StartError> started =
      StartChild({.argv = std::move(argv),
                  .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"},
                  .stdout_fd = null.get(),
                  .stderr_fd = null.get(),
                  .leads = ChildOptions::Leads::kSession,
                  .death_signal = death_signal,
                  .signal_mask = SignalSet({}),
                  .user = std::move(user)});
  if (const auto* refusal = std::get_if<StartError>(&started))
    FailErrno(refusal->error, "cannot start " + program);
  return std::get<pid_t>(started);
}

class LocalAgent : public Agent {
 public:
  explicit LocalAgent(std::string supervisor) : supervisor_(std::move(supervisor)) {}

  pid_t Start(const std::string& directory, const AttemptPlan& plan) override {
    return StartAttempt(supervisor_, directory, plan);
  }
  AttemptReport Report(const std::string& directory) override { return ReportOn(directory); }
  void Stop(const std::string& directory, double grace_seconds) override {
    RequestStop(directory, grace_seconds);
  }
  void Checkpoint(const std::string& directory) override { RequestCheckpoint(directory); }
  void NodeFailed(const std::string& directory, const std::string& node) override {
    ReportNodeFailed(directory, node);
  }
  int CleanUp(const std::string& directory) override { return CleanUpAttempt(directory); }

  // Uses cp and rm, because a forked child of a multi-threaded process can do little before exec.
  // cp ends with the daemon: the next one copies from the start, and two must not write to the same
  // files.
  pid_t StartCopying(const std::string& from, const std::string& to, uid_t uid,
                     gid_t gid) override {
    // --force: an interrupted earlier copy may have left read-only files.
    return StartTool({"cp", "-RPf", "--preserve=mode,timestamps", "-t", to, "--", from},
                     LookUpUser(uid, gid), SIGKILL);
  }

  // rm does not follow links, even those created while it runs.
  pid_t StartRemoving(const std::vector<std::string>& directories) override {
    std::vector<std::string> argv = {"rm", "-rf", "--one-file-system", "--"};
    argv.insert(argv.end(), directories.begin(), directories.end());
    return StartTool(std::move(argv), std::nullopt, 0);
  }

  void StopCopying(pid_t child) override { ::kill(child, SIGKILL); }

  std::optional<int> Reap(pid_t child) override {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) return std::nullopt;
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string supervisor_;
};

}  // namespace

std::unique_ptr<Agent> MakeLocalAgent(const std::string& supervisor) {
  return std::make_unique<LocalAgent>(supervisor);
}

}  // namespace renzan::cluster::local
