#include "renzan/cluster/kubernetes/objects/time_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

#include "renzan/base/clock.h"

namespace renzan::cluster::kubernetes {

std::optional<TimeMs> ParseTime(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    char* end = nullptr;
    fraction = std::strtod(rest, &end);
    rest = end;
  }
  if (std::string_view(rest) != "Z") return std::nullopt;
  return ::timegm(&parts) * kSecond + std::llround(fraction * kSecond);
}

std::string TimeText(TimeMs time) { return FormatUtc(static_cast<double>(time) / kSecond); }

std::string MicroTimeText(double unix_seconds) {
  const double whole = std::floor(unix_seconds);
  std::string text = FormatUtc(whole);
  text.pop_back();  // Z
  return fmt::format("{}.{:06}Z", text, static_cast<int>((unix_seconds - whole) * 1e6));
}

}  // namespace renzan::cluster::kubernetes
