#include "renzan/cluster/kubernetes/objects/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace renzan::cluster::kubernetes {
namespace {

constexpr std::array<std::pair<std::string_view, long double>, 16> kSuffixes = {{
    {"n", 1e-9L},
    {"u", 1e-6L},
    {"m", 1e-3L},
    {"", 1},
    {"k", 1e3L},
    {"M", 1e6L},
    {"G", 1e9L},
    {"T", 1e12L},
    {"P", 1e15L},
    {"E", 1e18L},
    {"Ki", 1024.0L},
    {"Mi", 1024.0L * 1024},
    {"Gi", 1024.0L * 1024 * 1024},
    {"Ti", 1024.0L * 1024 * 1024 * 1024},
    {"Pi", 1024.0L * 1024 * 1024 * 1024 * 1024},
    {"Ei", 1024.0L * 1024 * 1024 * 1024 * 1024 * 1024},
}};

std::optional<long double> Parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  // A long double holds any number of bytes exactly.
  long double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // 1e9999 is a valid quantity, too.
  if (error == std::errc::result_out_of_range)
    number = text.find('-') == std::string_view::npos ? HUGE_VALL : 0;
  else if (error != std::errc() || !std::isfinite(number))
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const auto& [suffix, scale] : kSuffixes)
    if (text == suffix) return number * scale;
  return std::nullopt;
}

std::optional<int64_t> RoundUp(std::optional<long double> number) {
  constexpr long double kLargest = 9.2e18L;
  if (!number) return std::nullopt;
  if (*number > kLargest) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::ceil(*number));
}

}  // namespace

std::optional<int64_t> ParseMilli(std::string_view text) {
  // In thousandths first: 0.1 is not a binary fraction, and 100.00000000000001 would be rounded up.
  const std::optional<long double> number = Parse(text);
  if (!number) return std::nullopt;
  const long double milli = *number * 1000, whole = std::round(milli);
  if (std::isinf(milli)) return RoundUp(milli);
  return RoundUp(std::abs(milli - whole) < 1e-9L * (1 + whole) ? whole : milli);
}

std::optional<int64_t> ParseUnits(std::string_view text) { return RoundUp(Parse(text)); }

}  // namespace renzan::cluster::kubernetes
