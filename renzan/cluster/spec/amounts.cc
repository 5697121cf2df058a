#include "renzan/cluster/spec/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "renzan/base/ascii.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

constexpr double kMaxSeconds = 10 * 365 * 86400.0;

// None unless all of `text` is a number.
template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  if (text.empty() || !IsDigit(text.front()) || !IsDigit(text.back())) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Range> TryParseRange(std::string_view text) {
  const size_t dots = text.find("..");
  const std::optional<int> min = ParseWhole<int>(text.substr(0, dots));
  const std::optional<int> max =
      dots == std::string_view::npos ? min : ParseWhole<int>(text.substr(dots + 2));
  if (!min || !max || *min > *max || *max > kMaxWorkers) return std::nullopt;
  return Range{*min, *max};
}

Range ParseReplicas(std::string_view text) {
  const std::optional<Range> range = TryParseRange(text);
  if (!range || range->min < 1) Fail(ErrorCode::kConfig, "replicas '{}' {}", text, kReplicasRule);
  return *range;
}

std::optional<int64_t> TryParseMilliseconds(std::string_view text) {
  const std::optional<double> seconds = ParseDuration(text);
  if (!seconds || *seconds > kMaxSeconds) return std::nullopt;
  return std::max<int64_t>(std::llround(*seconds * 1e3), *seconds > 0 ? 1 : 0);
}

}  // namespace renzan::cluster::spec
