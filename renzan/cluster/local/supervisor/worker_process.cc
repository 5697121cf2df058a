#include "renzan/cluster/local/supervisor/worker_process.h"

#include <cerrno>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/signals.h"

namespace renzan::cluster::local {
namespace {

constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;
// From -1000 to 1000; the default is 0.
constexpr int kOutOfMemoryScore = 500;

std::string PathOf(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) return entry.substr(5);
  return "";
}

StartFailure Explain(const StartError& failure, const WorkerCommand& command) {
  const std::string& program = command.argv[0];
  const char* const why = std::strerror(failure.error);
  switch (failure.step) {
    case StartError::Step::kSession:
    case StartError::Step::kOutput:
      return {kExitCannotExecute, fmt::format("cannot set up its session and output: {}", why)};
    case StartError::Step::kUser:
      return {kExitCannotExecute, fmt::format("cannot become user {}: {}", command.user.name, why)};
    case StartError::Step::kDirectory:
      return {kExitCannotExecute,
              fmt::format("cannot enter the working directory {} as user {}: {}",
                          command.working_directory, command.user.name, why)};
    case StartError::Step::kExec:
      break;
  }
  if (failure.error == EACCES && program.find('/') == std::string::npos)
    return {kExitCannotExecute,
            fmt::format("user {} has no permission to execute a program '{}' in PATH ({}): {}",
                        command.user.name, program, PathOf(command.environment), why)};
  if (failure.error != ENOENT)
    return {kExitCannotExecute,
            fmt::format("cannot execute '{}' as user {}: {}", program, command.user.name, why)};
  if (program.find('/') != std::string::npos)
    return {kExitNotFound,
            fmt::format("program '{}' (relative to {}), or its interpreter, does not "
                        "exist",
                        program, command.working_directory)};
  return {kExitNotFound,
          fmt::format("program '{}' is not in PATH ({})", program, PathOf(command.environment))};
}

}  // namespace

std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& command) {
  const std::variant<pid_t, StartError> started = StartChild(
      {.argv = command.argv,
       .environment = command.environment,
       .working_directory = command.working_directory,
       .stdout_fd = command.output_fd,
       .stderr_fd = command.output_fd,
       .leads = ChildOptions::Leads::kSession,
       .signal_mask = SignalSet({}),
       .default_signals = AllSignals(),
       .umask = 022,
       .user = command.user,
       // Out of memory, the kernel must kill workers before the supervisor and the daemon.
       .out_of_memory_score = kOutOfMemoryScore});
  if (const auto* failure = std::get_if<StartError>(&started)) return Explain(*failure, command);
  return std::get<pid_t>(started);
}

}  // namespace renzan::cluster::local
