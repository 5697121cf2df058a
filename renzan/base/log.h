#pragma once

// Log messages on stderr. Thread-safe. The backend (spdlog) is hidden in log.cc.

#include <fmt/format.h>

#include <string>
#include <utility>

namespace renzan {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Messages below `level` are dropped. The default is kInfo.
void SetLogLevel(LogLevel level);

// A prefix for every message of this process, such as "[worker 2] ". Empty by default.
void SetLogPrefix(const std::string& prefix);

void LogMessage(LogLevel level, const std::string& message);

// Of the program, for a library that it loads with a copy of this module of its own.
struct LogFunctions {
  void (*message)(LogLevel level, const std::string& message) = LogMessage;
  void (*set_prefix)(const std::string& prefix) = SetLogPrefix;
};
// From now on what this copy logs goes through `program`, whose level and prefix hold; null
// functions undo it.
void LogThrough(const LogFunctions& program);

template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace renzan
