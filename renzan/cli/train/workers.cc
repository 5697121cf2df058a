#include "renzan/cli/train/workers.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/cli/command_line.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/gather.h"

namespace renzan {
namespace {

// The CPUs available to this worker: workers with the same CPUs, in the same cgroup, or in the same
// worker of a job share them evenly.
int ResolveThreads(int threads, Communicator& comm) {
  const CpuBudget budget = ReadCpuBudget();
  const std::string cpus = HostName() + " " + budget.allowed_list;
  const std::string quota = HostName() + " " + budget.cgroup;
  const std::vector<std::string> all_cpus = GatherStrings(comm, cpus);
  const std::vector<std::string> all_quotas = GatherStrings(comm, quota);
  // Of a job system that does not name its workers, each process is one.
  const std::string request =
      HostName() + " " + (budget.worker.empty() ? std::to_string(comm.rank()) : budget.worker);
  const std::vector<std::string> all_requests = GatherStrings(comm, request);
  if (threads > 0) return threads;
  const auto sharing = [](const std::vector<std::string>& all, const std::string& own) {
    return static_cast<int>(std::count(all.begin(), all.end(), own));
  };
  return UsableCpus(budget, sharing(all_cpus, cpus), sharing(all_quotas, quota),
                    sharing(all_requests, request));
}

}  // namespace

int RunWorkers(const WorkerOptions& options, const std::function<void(Communicator&, int)>& body) {
  const std::optional<Rendezvous> rendezvous =
      RendezvousFromEnvironment([](const char* name) -> const char* { return std::getenv(name); });
  if (!rendezvous && options.workers > 1) {
    if (options.backend == "local")
      Fail(ErrorCode::kConfig,
           "comm.backend: local supports only one worker, but workers is {}: use gloo, "
           "mpi or auto",
           options.workers);
    options.on_launcher();
    return LaunchElastic({.workers = options.workers,
                          .backend = options.backend == "mpi" ? "mpi" : "gloo",
                          .argv = CommandLine(),
                          .program = "",
                          .environment = options.environment},
                         options.elastic)
        .last.exit_status;
  }
  options.on_worker();
  const Rendezvous alone;
  const Rendezvous& mine = rendezvous ? *rendezvous : alone;
  if (mine.world_size > 1) SetLogPrefix(fmt::format("[worker {}] ", mine.rank));
  std::signal(SIGPIPE, SIG_IGN);  // a peer's death is an Error
  const std::unique_ptr<Communicator> comm =
      MakeCommunicator(options.backend, mine, options.timeout_seconds);
  FindLocalRank(*comm, MachineId() + "\n" + VisibleGpus([](const char* name) -> const char* {
                         return std::getenv(name);
                       }));
  body(*comm, ResolveThreads(options.threads, *comm));
  return 0;
}

}  // namespace renzan
