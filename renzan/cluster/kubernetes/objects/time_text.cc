#include "renzan/cluster/kubernetes/objects/time_text.h"

#include <fmt/format.h>

#include <cmath>

#include "renzan/base/clock.h"

namespace renzan::cluster::kubernetes {

std::optional<TimeMs> ParseTime(std::string_view text) {
  const std::optional<double> seconds = ParseUtc(text);
  if (!seconds) return std::nullopt;
  return std::llround(*seconds * kSecond);
}

std::string TimeText(TimeMs time) { return FormatUtc(static_cast<double>(time) / kSecond); }

std::string MicroTimeText(double unix_seconds) {
  const double whole = std::floor(unix_seconds);
  std::string text = FormatUtc(whole);
  text.pop_back();  // Z
  return fmt::format("{}.{:06}Z", text, static_cast<int>((unix_seconds - whole) * 1e6));
}

}  // namespace renzan::cluster::kubernetes
