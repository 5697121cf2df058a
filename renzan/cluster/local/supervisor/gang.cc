#include "renzan/cluster/local/supervisor/gang.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/free_port.h"
#include "renzan/base/process/process_end.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/contract/stop_notice.h"
#include "renzan/cluster/local/supervisor/job_user.h"
#include "renzan/cluster/local/supervisor/launch_environment.h"
#include "renzan/cluster/spec/inherited.h"

namespace renzan::cluster::local {
namespace {

std::string GetEnv(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Jobs of earlier versions have the daemon's PATH and LANG, and its limits.
spec::Inherited InheritedBy(const AttemptPlan& plan) {
  if (!plan.inherited_file.empty()) return spec::InheritedFromJson(ReadFile(plan.inherited_file));
  spec::Inherited inherited{.niceness = getpriority(PRIO_PROCESS, 0)};
  if (const std::string path = GetEnv("PATH"); plan.uid == geteuid() && !path.empty())
    inherited.environment["PATH"] = path;
  if (const std::string lang = GetEnv("LANG"); !lang.empty()) inherited.environment["LANG"] = lang;
  return inherited;
}

}  // namespace

Gang::Gang(const AttemptPaths& paths, const AttemptPlan& plan)
    : paths_(paths), plan_(plan), cgroups_(plan) {}

std::optional<StartFailure> Gang::StartAll() {
  const JobUser user = LookUpUser(plan_.uid, plan_.gid);
  for (const std::string& path : {plan_.run_dir, plan_.checkpoint_dir})
    if (path.starts_with('/')) MakeDirectoryFor(user, path);    // not one in a store
  if (!plan_.run_dir.empty()) RemoveStopNotice(plan_.run_dir);  // of an earlier attempt
  const int port = plan_.workers.size() > 1 ? FreePort() : 0;
  const spec::Inherited inherited = InheritedBy(plan_);
  try {
    cgroups_.Make();
  } catch (const Error& error) {
    return StartFailure{error.exit_status(), error.what(), /*is_machines=*/true};
  }
  const AttemptPlan seen = cgroups_.denies_devices() ? WithOwnDevicesOnly(plan_) : plan_;
  for (int rank = 0; rank < static_cast<int>(plan_.workers.size()); ++rank) {
    Descriptor output =
        logs_.Add({paths_.Log(rank), plan_.log_bytes, plan_.log_files, plan_.uid, plan_.gid});
    // So that the worker can also open its output as /dev/stderr.
    if (geteuid() == 0 && fchown(output.get(), plan_.uid, plan_.gid) != 0)
      LogWarning("worker {} cannot open its /dev/stderr: {}", rank, std::strerror(errno));
    const WorkerCommand command = {
        .argv = plan_.command,
        .environment =
            WorkerEnvironment(seen, rank, paths_.directory, port, user, inherited.environment),
        .working_directory = plan_.working_directory,
        .user = user,
        .output_fd = output.get(),
        .cgroups = cgroups_.entrances(),
        .umask = inherited.umask,
        .limits = inherited.limits,
        .niceness = inherited.niceness};
    std::variant<pid_t, StartFailure> started = StartWorker(command);
    output.Close();
    if (auto* failure = std::get_if<StartFailure>(&started)) {
      failure->message =
          fmt::format("cannot start worker {} on {}: {}", rank,
                      plan_.workers[static_cast<size_t>(rank)].node, failure->message);
      return std::move(*failure);
    }
    pids_.push_back(std::get<pid_t>(started));
  }
  return std::nullopt;
}

std::optional<StartFailure> Gang::Start() {
  std::optional<StartFailure> failure;
  try {
    failure = StartAll();
  } catch (const Error& error) {
    failure = {error.exit_status(), fmt::format("cannot start the workers: {}", error.what())};
  }
  logs_.Start();
  if (failure) {
    for (const pid_t pid : pids_) kill(-pid, SIGKILL);
    KillLeftovers();
  }
  return failure;
}

std::vector<GangState::Exit> Gang::Reap() {
  std::vector<GangState::Exit> exits;
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto worker = std::find(pids_.begin(), pids_.end(), pid);
    if (worker == pids_.end()) continue;
    const ProcessEnd end = EndOf(status);
    exits.push_back({.rank = static_cast<int>(worker - pids_.begin()),
                     .exit_code = end.ShellStatus(),
                     .signal = end.signal});
    *worker = 0;  // an orphan may get this pid
  }
  return exits;
}

void Gang::Send(const GangState::Signal& signal) const {
  const pid_t pid = pids_.at(static_cast<size_t>(signal.rank));
  CHECK(pid > 0);
  if (signal.again && !HandlesOrIgnores(pid, signal.number)) return;
  kill(signal.number == SIGKILL ? -pid : pid, signal.number);
}

void Gang::RequestCheckpoint(int rank) const {
  const pid_t pid = pids_.at(static_cast<size_t>(rank));
  CHECK(pid > 0);
  if (HandlesOrIgnores(pid, SIGUSR1)) {
    kill(pid, SIGUSR1);
  } else {
    LogInfo("worker {}: no checkpoint requested, because it does not handle SIGUSR1", rank);
  }
}

void Gang::KillLeftovers() {
  cgroups_.Kill();
  if (!KillChildren())
    LogWarning("cannot kill processes that the job left behind: they belong to another user");
  out_of_memory_ = cgroups_.OutOfMemory();
  cgroups_.Remove();
  logs_.Finish();
}

}  // namespace renzan::cluster::local
