#include "renzan/cluster/kubernetes/api/exec_plugin.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/process/run_program.h"
#include "renzan/base/process/signals.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr const char* kInfoVariable = "KUBERNETES_EXEC_INFO";
constexpr double kSeconds = 60;
// For a login in a browser.
constexpr double kSecondsOfAPerson = 600;
constexpr size_t kMaxErrorLineBytes = 300;

// Later variables replace earlier ones.
std::vector<std::string> Environment(const ExecConfig& config, bool interactive) {
  std::vector<std::string> environment = OwnEnvironment();
  const auto set = [&](const std::string& variable) {
    const std::string start = variable.substr(0, variable.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) { return old.starts_with(start); });
    environment.push_back(variable);
  };
  for (const std::string& variable : config.environment) set(variable);
  set(fmt::format("{}={}", kInfoVariable, ExecInfo(config, interactive)));
  return environment;
}

[[noreturn]] void FailToStart(const ExecConfig& config, const StartError& error) {
  const bool missing = error.step == StartError::Step::kExec && error.error == ENOENT;
  const bool is_path = config.argv[0].find('/') != std::string::npos;
  Fail(error.step == StartError::Step::kExec ? ErrorCode::kConfig : ErrorCode::kOsError,
       "{}: the program for credentials '{}' {}{}: {}{}", config.where, config.argv[0],
       !missing  ? "cannot be executed"
       : is_path ? "does not exist"
                 : "is not in PATH",
       missing ? "" : fmt::format(" ({})", std::strerror(error.error)),
       missing ? "install it, or correct the command there"
               : "make it executable, or correct the command there",
       config.install_hint.empty() ? "" : "\n" + EscapeMessage(config.install_hint));
}

// The last line of what it wrote to stderr.
std::string LastLine(std::string errors) {
  while (!errors.empty() && std::strchr(" \r\n", errors.back()) != nullptr) errors.pop_back();
  const size_t line = errors.rfind('\n');
  if (line != std::string::npos) errors.erase(0, line + 1);
  return errors.empty() ? "" : fmt::format(": {}", Escape(ShortText(errors, kMaxErrorLineBytes)));
}

[[noreturn]] void FailRun(const ExecConfig& config, const ExecSurroundings& surroundings,
                          const ProgramResult& result) {
  const std::string who =
      fmt::format("{}: the program for credentials '{}'", config.where, config.argv[0]);
  constexpr const char* kNext =
      "log in again, or run it by hand with the arguments there, until it works";
  const std::string said = LastLine(result.last_errors);
  switch (result.outcome) {
    case ProgramResult::Outcome::kStopped:
      Fail(ErrorCode::kTempFail, "{} was stopped", who);
    case ProgramResult::Outcome::kTimeLimit:
      Fail(ErrorCode::kUnavailable, "{} did not end within {:g} s{}: {}", who, surroundings.seconds,
           said, kNext);
    case ProgramResult::Outcome::kOutputLimit:
      Fail(ErrorCode::kConfig, "{} wrote too much to its stdout: {}", who,
           "is it a program for credentials?");
    case ProgramResult::Outcome::kEnded:
      break;
  }
  Fail(ErrorCode::kNoPermission, "{} {}{}: {}", who, DescribeEnd(result.end), said, kNext);
}

}  // namespace

ExecSurroundings OwnExecSurroundings() {
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  return {.terminal = terminal, .seconds = terminal ? kSecondsOfAPerson : kSeconds};
}

ExecAnswer RunExecPlugin(const ExecConfig& config, const ExecSurroundings& surroundings,
                         const Clock& clock, const std::stop_token& stop) {
  if (config.interactive == InteractiveMode::kAlways && !surroundings.terminal)
    Fail(ErrorCode::kConfig,
         "{}: interactiveMode is Always, and stdin is not a terminal: run the command in one, or "
         "use credentials that ask nobody",
         config.where);
  const bool interactive = surroundings.terminal && config.interactive != InteractiveMode::kNever;
  ChildOptions child = {.argv = config.argv,
                        .environment = Environment(config, interactive),
                        .signal_mask = SignalSet({}),
                        .default_signals = SignalSet({SIGPIPE})};
  if (interactive) {
    child.stdin_fd = STDIN_FILENO;
    child.leads = ChildOptions::Leads::kNothing;
  }
  const auto ran = RunProgram(std::move(child),
                              {.seconds = surroundings.seconds, .copy_errors = !interactive}, stop);
  if (const auto* error = std::get_if<StartError>(&ran)) FailToStart(config, *error);
  const auto& result = std::get<ProgramResult>(ran);
  if (result.outcome != ProgramResult::Outcome::kEnded || result.end.ShellStatus() != 0)
    FailRun(config, surroundings, result);
  return ParseExecAnswer(config, result.output, clock.UnixSeconds());
}

}  // namespace renzan::cluster::kubernetes
