#include "renzan/base/mebibytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "renzan/base/ascii.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr int64_t kMaxMebibytes = int64_t{1} << 36;

std::optional<double> MebibytesPer(std::string_view unit) {
  if (unit.empty()) return 1.0 / (1 << 20);
  if (unit == "KiB") return 1.0 / (1 << 10);
  if (unit == "MiB") return 1;
  if (unit == "GiB") return 1 << 10;
  if (unit == "TiB") return 1 << 20;
  if (unit == "PiB") return 1 << 30;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> TryParseMebibytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0 || !IsDigit(text[0]) || !IsDigit(text[digits - 1])) return std::nullopt;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + digits, number);
  const std::optional<double> unit = MebibytesPer(text.substr(digits));
  if (error != std::errc() || stop != text.data() + digits || !unit) return std::nullopt;
  const double mebibytes = std::ceil(number * *unit);
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

}  // namespace renzan
