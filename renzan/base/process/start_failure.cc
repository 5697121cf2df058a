#include "renzan/base/process/start_failure.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace renzan {
namespace {

constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;

std::string PathOf(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) return entry.substr(5);
  return "/bin:/usr/bin";  // as execvp
}

std::string DirectoryOf(const ChildOptions& options) {
  if (!options.working_directory.empty()) return options.working_directory;
  std::error_code unknown;
  return std::filesystem::current_path(unknown).string();
}

// 0, or why exec would not run the file.
int WhyNotExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

int FindProgram(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return WhyNotExecutable(program);
  if (program.empty()) return ENOENT;
  const std::string path = PathOf(environment);
  int result = ENOENT;
  for (std::string_view rest = path;;) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string_view directory = rest.substr(0, colon);
    const int why =
        WhyNotExecutable(fmt::format("{}/{}", directory.empty() ? "." : directory, program));
    if (why == 0) return 0;
    if (why == EACCES) result = EACCES;
    if (colon == rest.size()) return result;
    rest.remove_prefix(colon + 1);
  }
}

StartFailure ExplainStartError(const StartError& error, const ChildOptions& options,
                               const std::string& user) {
  const std::string& program = options.program.empty() ? options.argv[0] : options.program;
  const char* const why = std::strerror(error.error);
  switch (error.step) {
    case StartError::Step::kCgroup:
      return {kExitCannotExecute, fmt::format("cannot enter its control group: {}", why)};
    case StartError::Step::kSession:
    case StartError::Step::kOutput:
      return {kExitCannotExecute, fmt::format("cannot set up its session and output: {}", why)};
    case StartError::Step::kUser:
      return {kExitCannotExecute, fmt::format("cannot become user {}: {}", user, why)};
    case StartError::Step::kDirectory:
      return {kExitCannotExecute,
              fmt::format("cannot enter the working directory {} as user {}: {}",
                          options.working_directory, user, why)};
    case StartError::Step::kLimits:
      return {kExitCannotExecute, fmt::format("cannot set its resource limits: {}", why)};
    case StartError::Step::kExec:
      break;
  }
  const bool is_path = program.find('/') != std::string::npos;
  if (error.error == EACCES && !is_path)
    return {kExitCannotExecute,
            fmt::format("user {} has no permission to execute a program '{}' in PATH ({}): {}",
                        user, program, PathOf(options.environment), why)};
  if (error.error != ENOENT)
    return {kExitCannotExecute,
            fmt::format("cannot execute '{}' as user {}: {}", program, user, why)};
  if (is_path)
    return {kExitNotFound,
            fmt::format("program '{}' (relative to {}), or its interpreter, does not exist",
                        program, DirectoryOf(options))};
  return {kExitNotFound,
          fmt::format("program '{}' is not in PATH ({})", program, PathOf(options.environment))};
}

}  // namespace renzan
