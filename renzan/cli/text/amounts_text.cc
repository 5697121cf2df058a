#include "renzan/cli/text/amounts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "renzan/base/duration.h"

namespace renzan {

std::string DurationText(int64_t ms) { return FormatDuration(std::max<int64_t>(ms, 0) / 1000); }

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
