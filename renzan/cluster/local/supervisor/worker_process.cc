#include "renzan/cluster/local/supervisor/worker_process.h"

#include "renzan/base/process/child.h"
#include "renzan/base/process/signals.h"

namespace renzan::cluster::local {
namespace {

// From -1000 to 1000; the default is 0.
constexpr int kOutOfMemoryScore = 500;

}  // namespace

std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& command) {
  const ChildOptions options = {.argv = command.argv,
                                .environment = command.environment,
                                .working_directory = command.working_directory,
                                .stdout_fd = command.output_fd,
                                .stderr_fd = command.output_fd,
                                .leads = ChildOptions::Leads::kSession,
                                .signal_mask = SignalSet({}),
                                .default_signals = AllSignals(),
                                .umask = command.umask,
                                .user = command.user,
                                .limits = LowerTo(OwnLimits(), command.limits),
                                .niceness = command.niceness,
                                .cgroups = command.cgroups,
                                // Out of memory, the kernel must kill workers before the supervisor
                                // and the daemon.
                                .out_of_memory_score = kOutOfMemoryScore};
  const std::variant<pid_t, StartError> started = StartChild(options);
  if (const auto* error = std::get_if<StartError>(&started))
    return ExplainStartError(*error, options, command.user.name);
  return std::get<pid_t>(started);
}

}  // namespace renzan::cluster::local
