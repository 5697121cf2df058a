#include "renzan/launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/oom_kills.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/free_port.h"
#include "renzan/launch/supervisor.h"

extern char** environ;

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
  std::set<std::string_view> dropped = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR",
                                        "MASTER_PORT"};
  for (const std::string& entry : result) dropped.insert(NameOf(entry));
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!dropped.contains(NameOf(*entry))) result.emplace_back(*entry);
  return result;
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

pid_t Start(const ChildOptions& options) {
  const std::variant<pid_t, StartError> started = StartChild(options);
  if (const auto* failure = std::get_if<StartError>(&started))
    Fail(ErrorCode::kOsError, "cannot start {}: {}", options.program,
         std::strerror(failure->error));
  return std::get<pid_t>(started);
}

LaunchResult LaunchProcesses(const LaunchOptions& options, const std::string& program,
                             const SignalQueue& signals) {
  const std::string port = std::to_string(FreePort());
  const int64_t oom_kills_before = OomKills();
  std::vector<Worker> workers;
  try {
    for (int rank = 0; rank < options.workers; ++rank) {
      ChildOptions child;
      child.program = program;
      child.argv = options.argv;
      child.environment =
          Environment(options, {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
                                fmt::format("WORLD_SIZE={}", options.workers),
                                "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
      child.signal_mask = signals.mask_before();
      workers.push_back({fmt::format("worker {}", rank), Start(child)});
    }
  } catch (const Error&) {
    // Ends those already running.
    Supervisor(std::move(workers), nullptr, signals, options, oom_kills_before);
    throw;
  }
  return Supervisor(std::move(workers), nullptr, signals, options, oom_kills_before).Run();
}

LaunchResult LaunchMpirun(const LaunchOptions& options, const std::string& program,
                          const SignalQueue& signals) {
  if (!ExecutableInPath("mpirun"))
    Fail(ErrorCode::kUnavailable,
         "backend mpi needs mpirun, which is not in PATH: install it (Debian: openmpi-bin) or use "
         "backend gloo");
  // All workers are on this host: shared memory only, without probing networks.
  std::vector<std::string> arguments = {
      "mpirun",          "-n",        std::to_string(options.workers),
      "--oversubscribe", "--bind-to", "none",
      "--mca",           "pml",       "ob1",
      "--mca",           "btl",       "self,vader"};
  if (options.workers > UsableCpus(ReadCpuBudget()))
    arguments.insert(arguments.end(), {"--mca", "mpi_yield_when_idle", "1"});
  arguments.push_back(program);
  if (!options.argv.empty())
    arguments.insert(arguments.end(), options.argv.begin() + 1, options.argv.end());
  std::vector<std::string> added;
  if (geteuid() == 0) added = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

  const OrphanReaper orphans;  // in case mpirun is killed
  const int64_t oom_kills_before = OomKills();
  OutputRelay relay;
  ChildOptions child;
  child.program = "mpirun";
  child.argv = arguments;
  child.environment = Environment(options, added);
  // When a machine shuts down, mpirun gets SIGTERM too and would kill its workers a second later,
  // during their last checkpoint.
  child.signal_mask = signals.mask_before();
  sigaddset(&*child.signal_mask, SIGTERM);
  sigdelset(&*child.signal_mask, SIGINT);
  child.default_signals = SignalSet({SIGINT});
  // On SIGINT, mpirun ends its workers before it exits.
  child.death_signal = SIGINT;
  child.stderr_fd = relay.write_fd();
  const Worker mpirun = {"mpirun", Start(child)};
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
  if (options.backend == "mpi") return LaunchMpirun(options, program, signals);
  if (options.backend != "gloo" && options.backend != "auto")
    Fail(ErrorCode::kConfig, "backend '{}' cannot run {} workers: use gloo or mpi", options.backend,
         options.workers);
  return LaunchProcesses(options, program, signals);
}

}  // namespace renzan
