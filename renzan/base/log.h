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

// From now on, each message begins with the time, in UTC: for the log file of a service.
void LogWithTimes();

// The log functions of a program, for a library that it loads and that has its own copy of this
// module.
struct LogFunctions {
  void (*message)(LogLevel level, const std::string& message) = LogMessage;
  void (*set_prefix)(const std::string& prefix) = SetLogPrefix;
  void (*with_times)() = LogWithTimes;
};
// Sends what this copy logs to `program`, whose level and prefix then apply; null functions undo
// it.
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
