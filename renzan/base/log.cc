#include "renzan/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "renzan/base/escape.h"

namespace renzan {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    // Not registered: other copies of this module, in libraries, may use the name, too.
    auto made = std::make_shared<spdlog::logger>(
        "renzan", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%v%$");
    return made;
  }();
  return *logger;
}

std::string& Prefix() {
  static std::string prefix;
  return prefix;
}

// The program's functions; null unless LogThrough() has set them.
LogFunctions& Program() {
  static LogFunctions program{nullptr, nullptr, nullptr};
  return program;
}

}  // namespace

void SetLogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      Logger().set_level(spdlog::level::debug);
      break;
    case LogLevel::kInfo:
      Logger().set_level(spdlog::level::info);
      break;
    case LogLevel::kWarning:
      Logger().set_level(spdlog::level::warn);
      break;
    case LogLevel::kError:
      Logger().set_level(spdlog::level::err);
      break;
  }
}

void SetLogPrefix(const std::string& prefix) {
  if (Program().set_prefix != nullptr) return Program().set_prefix(prefix);
  Prefix() = prefix;
}

void LogWithTimes() {
  if (Program().with_times != nullptr) return Program().with_times();
  Logger().set_pattern("%Y-%m-%dT%H:%M:%SZ %^%v%$", spdlog::pattern_time_type::utc);
}

void LogThrough(const LogFunctions& program) { Program() = program; }

void LogMessage(LogLevel level, const std::string& message) {
  if (Program().message != nullptr) return Program().message(level, message);
  // A message may quote bytes of a file or a peer: escape them, so that the terminal does not
  // interpret control sequences.
  const std::string text = Prefix() + EscapeMessage(message);
  switch (level) {
    case LogLevel::kDebug:
      Logger().debug("{}", text);
      break;
    case LogLevel::kInfo:
      Logger().info("{}", text);
      break;
    case LogLevel::kWarning:
      Logger().warn("warning: {}", text);
      break;
    case LogLevel::kError:
      Logger().error("error: {}", text);
      break;
  }
}

}  // namespace renzan
