#include "renzan/launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "renzan/base/counted.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/oom_kills.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/free_port.h"
#include "renzan/base/process/start_failure.h"
#include "renzan/base/this_program.h"
#include "renzan/launch/group_guard.h"
#include "renzan/launch/mpirun_command.h"
#include "renzan/launch/supervisor.h"

namespace renzan {
namespace {

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

// The environment of every worker: ours without the variables of another launcher, plus those of
// the options and `added` ("NAME=value").
std::vector<std::string> Environment(const LaunchOptions& options,
                                     const std::vector<std::string>& added) {
  std::vector<std::string> result = added;
  result.push_back(fmt::format("RENZAN_RESTART={}", options.restart));
  result.insert(result.end(), options.environment.begin(), options.environment.end());
  std::set<std::string_view> dropped = {"RANK",       "WORLD_SIZE",       "MASTER_ADDR",
                                        "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"};
  for (const std::string& entry : result) dropped.insert(NameOf(entry));
  for (const std::string& entry : OwnEnvironment())
    if (!dropped.contains(NameOf(entry))) result.push_back(entry);
  return result;
}

// Why the workers' program cannot be started.
LaunchResult NotStarted(const LaunchOptions& options, const StartError& error,
                        const ChildOptions& child) {
  const StartFailure failure = ExplainStartError(error, child, std::to_string(geteuid()));
  if (options.kind == WorkerProgram::kRenzan)
    Fail(ErrorCode::kOsError, "cannot start workers: {}", failure.message);
  return {.kind = LaunchResult::Kind::kFailure,
          .exit_status = failure.exit_code,
          .cause = failure.message};
}

LaunchResult LaunchProcesses(const LaunchOptions& options, const std::string& program,
                             const std::vector<std::string>& shared, const SignalQueue& signals) {
  const OrphanReaper orphans;
  // Workers of this program have no children.
  std::optional<GroupGuard> guard;
  if (options.kind == WorkerProgram::kAny) guard.emplace();
  const int64_t oom_kills_before = OomKills();
  std::vector<Worker> workers;
  // Also called if not all can be started; the temporary then ends the others.
  const auto supervisor = [&] {
    return std::make_unique<Supervisor>(std::move(workers), nullptr, signals, options,
                                        oom_kills_before);
  };
  try {
    for (int rank = 0; rank < options.workers; ++rank) {
      std::vector<std::string> variables = shared;
      variables.push_back(fmt::format("RANK={}", rank));
      variables.push_back(fmt::format("LOCAL_RANK={}", rank));
      const ChildOptions child = {.argv = options.argv,
                                  .program = program,
                                  .environment = Environment(options, variables),
                                  .signal_mask = signals.mask_before()};
      const std::variant<pid_t, StartError> started = StartChild(child);
      if (const auto* error = std::get_if<StartError>(&started)) {
        supervisor();
        return NotStarted(options, *error, child);
      }
      workers.push_back({fmt::format("worker {}", rank), std::get<pid_t>(started)});
      if (guard) guard->Add(workers.back().pid);
    }
  } catch (const Error&) {
    supervisor();
    throw;
  }
  return supervisor()->Run();
}

LaunchResult LaunchMpirun(const LaunchOptions& options, const std::string& program,
                          const std::vector<std::string>& shared, const SignalQueue& signals) {
  if (FindProgram("mpirun", OwnEnvironment()) != 0)
    Fail(ErrorCode::kUnavailable,
         "backend mpi needs mpirun, which is not in PATH: install it (Debian: openmpi-bin) or use "
         "backend gloo");
  std::vector<std::string> arguments = options.argv;
  if (!arguments.empty()) arguments.erase(arguments.begin());
  if (std::find(arguments.begin(), arguments.end(), ":") != arguments.end())
    Fail(ErrorCode::kUsage, "mpirun would interpret the argument ':' itself: use backend gloo");
  std::vector<std::string> variables = shared;
  if (geteuid() == 0)
    variables.insert(variables.end(),
                     {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});

  const OrphanReaper orphans;
  const int64_t oom_kills_before = OomKills();
  OutputRelay relay;
  ChildOptions child;
  child.argv = MpirunCommand(options.workers, options.workers > UsableCpus(ReadCpuBudget()),
                             program, arguments);
  child.environment = Environment(options, variables);
  // mpirun's own explanation is long.
  if (const int error = FindProgram(program, child.environment); error != 0)
    return NotStarted(options, {.error = error},
                      {.argv = {program}, .environment = child.environment});
  // When a machine shuts down, mpirun gets SIGTERM too and would kill its workers a second later,
  // during their last checkpoint.
  child.signal_mask = signals.mask_before();
  sigaddset(&*child.signal_mask, SIGTERM);
  sigdelset(&*child.signal_mask, SIGINT);
  child.default_signals = SignalSet({SIGINT});
  // On SIGINT, mpirun ends its workers before it exits.
  child.death_signal = SIGINT;
  child.stderr_fd = relay.write_fd();
  const std::variant<pid_t, StartError> started = StartChild(child);
  if (const auto* error = std::get_if<StartError>(&started))
    Fail(ErrorCode::kOsError, "cannot start mpirun: {}", std::strerror(error->error));
  const Worker mpirun = {"mpirun", std::get<pid_t>(started)};
  relay.CloseWriteEnd();
  return Supervisor({mpirun}, &relay, signals, options, oom_kills_before).Run();
}

}  // namespace

std::vector<int> LaunchSignals() {
  std::vector<int> signals = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};
  if (!IsIgnored(SIGHUP)) signals.push_back(SIGHUP);
  return signals;
}

LaunchResult LaunchLocalWorkers(const LaunchOptions& options, const SignalQueue& signals) {
  CHECK(options.workers >= 1);
  const std::string program = options.program.empty() ? ThisProgram() : options.program;
  const std::vector<std::string> shared = {fmt::format("WORLD_SIZE={}", options.workers),
                                           fmt::format("LOCAL_WORLD_SIZE={}", options.workers),
                                           "MASTER_ADDR=127.0.0.1",
                                           fmt::format("MASTER_PORT={}", FreePort())};
  if (options.backend == "mpi") return LaunchMpirun(options, program, shared, signals);
  if (options.backend != "gloo" && options.backend != "auto")
    Fail(ErrorCode::kConfig, "backend '{}' cannot run {}: use gloo or mpi", options.backend,
         Counted(options.workers, "worker"));
  return LaunchProcesses(options, program, shared, signals);
}

}  // namespace renzan
