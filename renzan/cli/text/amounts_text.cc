#include "renzan/cli/text/amounts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace renzan {

std::string DurationText(int64_t ms) {
  const int64_t seconds = std::max<int64_t>(ms, 0) / 1000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string LocalTimeText(int64_t unix_ms, int64_t now_ms) {
  constexpr int64_t kHalfDayMs = 12 * 3600 * 1000;
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  const bool near = std::abs(unix_ms - now_ms) <= kHalfDayMs;
  std::strftime(text, sizeof text, near ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string NumberText(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace renzan
