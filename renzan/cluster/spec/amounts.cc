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

constexpr int64_t kMaxMebibytes = int64_t{1} << 36;
constexpr double kMaxSeconds = 10 * 365 * 86400.0;

std::optional<double> MebibytesPer(std::string_view unit) {
  if (unit.empty()) return 1.0 / (1 << 20);
  if (unit == "KiB") return 1.0 / (1 << 10);
  if (unit == "MiB") return 1;
  if (unit == "GiB") return 1 << 10;
  if (unit == "TiB") return 1 << 20;
  if (unit == "PiB") return 1 << 30;
  return std::nullopt;
}

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

std::optional<int64_t> TryParseMebibytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = ParseWhole<double>(text.substr(0, digits));
  const std::optional<double> unit = MebibytesPer(text.substr(digits));
  if (!number || !unit) return std::nullopt;
  const double mebibytes = std::ceil(*number * *unit);
  if (!(mebibytes <= static_cast<double>(kMaxMebibytes))) return std::nullopt;
  return static_cast<int64_t>(mebibytes);
}

int64_t ParseMebibytes(std::string_view text) {
  const std::optional<int64_t> mebibytes = TryParseMebibytes(text);
  if (!mebibytes) Fail(ErrorCode::kConfig, "memory '{}' {}", text, kMemoryRule);
  return *mebibytes;
}

std::string MebibytesText(int64_t mebibytes) {
  constexpr std::array kUnits = {"MiB", "GiB", "TiB", "PiB"};
  if (mebibytes == 0) return "0";
  double amount = static_cast<double>(mebibytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  std::string text = fmt::format("{:.1f}", amount);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + kUnits[unit];
}

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
