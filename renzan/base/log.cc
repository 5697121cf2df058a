#include "renzan/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "renzan/base/escape.h"

namespace renzan {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_color_mt("renzan");
    made->set_pattern("%^%v%$");
    return made;
  }();
  return *logger;
}

std::string& Prefix() {
  static std::string prefix;
  return prefix;
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

void SetLogPrefix(const std::string& prefix) { Prefix() = prefix; }

void LogMessage(LogLevel level, const std::string& message) {
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
