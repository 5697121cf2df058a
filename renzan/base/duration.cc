#include "renzan/base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "renzan/base/ascii.h"

namespace renzan {
namespace {

std::optional<double> SecondsPer(std::string_view unit) {
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  if (unit == "d") return 86400;
  return std::nullopt;
}

}  // namespace

std::optional<double> ParseDuration(std::string_view text) {
  if (text == "0") return 0;
  const size_t digits = text.find_first_not_of("0123456789.");
  if (digits == std::string_view::npos || digits == 0) return std::nullopt;
  const std::string_view number = text.substr(0, digits);
  const std::optional<double> unit = SecondsPer(text.substr(digits));
  // "1." and ".5" are usually typos.
  if (!unit || !IsDigit(number.front()) || !IsDigit(number.back())) return std::nullopt;

  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value,
                                            std::chars_format::fixed);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  const double seconds = value * *unit;
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

std::string FormatDuration(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

}  // namespace renzan
