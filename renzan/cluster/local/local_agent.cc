#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/signals.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

struct ToolOptions {
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  std::string log = "/dev/null";  // gets its output
  int death_signal = 0;           // sent to it when the calling thread ends; 0: none
};

// Runs a program as `user` if we are root, otherwise as the current user.
pid_t StartTool(std::vector<std::string> argv, std::optional<UserIds> user,
                ToolOptions options = {}) {
  const Descriptor output(
      ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!output) FailErrno(errno, "cannot open " + options.log);
  if (::geteuid() != 0) user.reset();
  const std::string program = argv[0];
  const std::variant<pid_t, StartError> started =
      StartChild({.argv = std::move(argv),
                  .environment = std::move(options.environment),
                  .stdout_fd = output.get(),
                  .stderr_fd = output.get(),
                  .leads = ChildOptions::Leads::kSession,
                  .death_signal = options.death_signal,
                  .signal_mask = SignalSet({}),
                  .user = std::move(user)});
  if (const auto* refusal = std::get_if<StartError>(&started))
    FailErrno(refusal->error, "cannot start " + program);
  return std::get<pid_t>(started);
}

class LocalAgent : public Agent {
 public:
  LocalAgent(std::string supervisor, std::string renzan)
      : supervisor_(std::move(supervisor)), renzan_(std::move(renzan)) {}

  pid_t Start(const std::string& directory, const AttemptPlan& plan) override {
    return StartAttempt(supervisor_, directory, plan);
  }
  AttemptReport Report(const std::string& directory) override { return ReportOn(directory); }
  void Stop(const std::string& directory, double grace_seconds) override {
    RequestStop(directory, grace_seconds);
  }
  void Checkpoint(const std::string& directory) override { RequestCheckpoint(directory); }
  void SetTimeLimit(const std::string& directory, int64_t timeout_ms) override {
    RequestTimeLimit(directory, timeout_ms);
  }
  void NodeFailed(const std::string& directory, const std::string& node) override {
    ReportNodeFailed(directory, node);
  }
  int CleanUp(const std::string& directory) override { return CleanUpAttempt(directory); }
  std::optional<Started> Find(const std::string& directory) override {
    try {
      const AttemptPaths paths(directory);
      Started started{.plan = ReadPlan(paths), .at = {}};
      if (const std::optional<AttemptStart> start = ReadStart(paths))
        started.at = start->started_ms;
      return started;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Uses cp and rm, because a forked child of a multi-threaded process can do little before exec.
  // cp ends with the daemon: the next one copies from the start, and two must not write to the same
  // files.
  pid_t StartCopying(const std::string& from, const std::string& to, uid_t uid, gid_t gid,
                     const std::string& log) override {
    // --force: an interrupted earlier copy may have left read-only files.
    return StartTool({"cp", "-RPf", "--preserve=mode,timestamps", "-t", to, "--", from},
                     LookUpUser(uid, gid), {.log = log, .death_signal = SIGKILL});
  }

  pid_t StartUploading(const Upload& upload) override {
    const JobUser user = LookUpUser(upload.uid, upload.gid);
    std::map<std::string, std::string> variables = {
        {"PATH", "/usr/bin:/bin"}, {"HOME", user.home}, {"USER", user.name}};
    for (const auto& [name, value] : upload.environment) variables[name] = value;
    ToolOptions options{.environment = {}, .log = upload.log, .death_signal = SIGKILL};
    for (const auto& [name, value] : variables) options.environment.push_back(name + "=" + value);
    return StartTool({renzan_, "upload", "--files-from", upload.sources, "--", upload.to}, user,
                     std::move(options));
  }

  pid_t StartChecking(const std::vector<std::string>& command,
                      const std::map<std::string, std::string>& environment,
                      const std::string& log) override {
    ToolOptions options{.log = log, .death_signal = SIGKILL};
    options.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                           "LC_ALL=C"};
    for (const auto& [name, value] : environment) options.environment.push_back(name + "=" + value);
    return StartTool(command, std::nullopt, std::move(options));
  }

  // It leads a session.
  void StopChecking(pid_t child) override { ::kill(-child, SIGKILL); }

  // rm does not follow links, even those created while it runs.
  pid_t StartRemoving(const std::vector<std::string>& directories) override {
    std::vector<std::string> argv = {"rm", "-rf", "--one-file-system", "--"};
    argv.insert(argv.end(), directories.begin(), directories.end());
    return StartTool(std::move(argv), std::nullopt);
  }

  void StopCopying(pid_t child) override { ::kill(child, SIGKILL); }

  std::optional<int> Reap(pid_t child) override {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) return std::nullopt;
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string supervisor_, renzan_;
};

}  // namespace

std::unique_ptr<Agent> MakeLocalAgent(const std::string& supervisor, const std::string& renzan) {
  return std::make_unique<LocalAgent>(supervisor, renzan);
}

}  // namespace renzan::cluster::local
