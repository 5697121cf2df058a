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
