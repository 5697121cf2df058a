#include "renzan/data/row_split.h"

#include <xxhash.h>

#include <charconv>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/philox.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

// From here on, doubles leave out whole numbers.
constexpr double kMaxExact = 0x1.0p53;

std::optional<int64_t> ParseWhole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// A finite one: texts such as nan and inf are names, too.
std::optional<double> ParseFinite(std::string_view text) {
  const std::optional<double> number = ParseNumber(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Whether texts of this form, with all of their digits, are in the order of the dates.
bool IsIso(std::string_view text, bool with_time) {
  return with_time ? text.size() == 19 && DateFormat("%Y-%m-%d %H:%M:%S").Parse(text)
                   : text.size() == 10 && DateFormat("%Y-%m-%d").Parse(text);
}

}  // namespace

RowSplit::RowSplit(const std::string& text, uint64_t seed)
    : text_(text), key_(PhiloxKey(seed, "split")) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string kind = text.substr(0, colon);
  std::string rest = colon == text.size() ? "" : text.substr(colon + 1);
  const size_t at = rest.rfind('@');
  bool good = kind == "random";
  if (kind == "time" || kind == "group") {
    kind_ = kind == "time" ? Kind::kTime : Kind::kGroup;
    good = at != std::string::npos && at > 0 && at + 1 < rest.size();
    if (good) {
      column_ = rest.substr(0, at);
      rest.erase(0, at + 1);
    }
  }
  if (kind_ != Kind::kTime && good) {
    share_ = ParseNumber(rest).value_or(0);
    good = share_ > 0 && share_ < 1;
  }
  if (!good)
    Fail(
        ErrorCode::kUsage,
        "--split {}: must be time:COLUMN@VALUE (rows from VALUE on are the test set), random:SHARE "
        "or group:COLUMN@SHARE, with a share of the test set between 0 and 1",
        text);
  value_ = rest;
}

void RowSplit::FailValue(const std::string& problem) const {
  Fail(ErrorCode::kUsage, "--split {}: '{}' {}", text_, Escape(value_), problem);
}

void RowSplit::SetFormat(const std::string& format) {
  if (kind_ != Kind::kTime) return;
  format_ = format;
  if (format == kIsoDates) {
    if (!IsIso(value_, false)) FailValue("is not a date such as 2024-03-01, as the column's are");
  } else if (format == kIsoTimes) {
    if (!IsIso(value_, false) && !IsIso(value_, true))
      FailValue("is not a date such as 2024-03-01 or 2024-03-01 09:00:00, with all of its digits");
  } else if (format.empty() || format == kNumbers) {
    SetNumber();
  } else {
    bool is_exact = true;
    seconds_ = DateFormat(format).ParseSeconds(value_, &is_exact);
    if (!seconds_) FailValue(fmt::format("is not a date of the column's format '{}'", format));
    if (!is_exact) FailValue("must be a whole second: dates are compared by those");
  }
}

void RowSplit::SetNumber() {
  number_ = ParseFinite(value_);
  whole_ = ParseWhole(value_);
  if (!number_ && format_ == kNumbers) FailValue("is not a number, as the column's values are");
  if (number_ && !whole_ && std::fabs(*number_) >= kMaxExact)
    FailValue("is too large to be compared exactly: write a whole number of 64 bits");
}

bool RowSplit::Draws(uint64_t low, uint64_t high) const {
  return Philox::Draw(key_, low, high)[0] * 0x1.0p-32 < share_;
}

std::string RowSplit::HoldsOut(int64_t row, std::string_view field, bool* held_out) const {
  if (kind_ == Kind::kRandom) {
    *held_out = Draws(static_cast<uint64_t>(row), 0);
    return "";
  }
  if (kind_ == Kind::kGroup) {
    *held_out = Draws(XXH64(field.data(), field.size(), 0), 1);
    return "";
  }
  if (field.empty()) return "is missing, and --split needs it";
  if (seconds_) return CompareSeconds(field, held_out);
  if (number_) return CompareNumbers(field, held_out);
  // The text of a year before 0 or after 9999 is not in the order of the dates.
  if (is_iso() && (field.size() < 10 || field[0] == '-' || field[4] != '-'))
    return "is not of a year from 0 to 9999";
  if (!is_iso() && ParseFinite(field)) return "is a number, which the value of --split is not";
  *held_out = field >= value_;
  return "";
}

std::string RowSplit::CompareSeconds(std::string_view field, bool* held_out) const {
  const std::optional<int64_t> seconds = DateFormat(format_).ParseSeconds(field);
  if (!seconds) return fmt::format("is not a date of the format '{}'", format_);
  *held_out = *seconds >= *seconds_;
  return "";
}

std::string RowSplit::CompareNumbers(std::string_view field, bool* held_out) const {
  const std::optional<int64_t> whole = ParseWhole(field);
  if (whole && whole_) {
    *held_out = *whole >= *whole_;
    return "";
  }
  const std::optional<double> number = ParseNumber(field);
  if (!number || std::isnan(*number)) return "is not a number, as the value of --split is";
  if (std::fabs(*number_) >= kMaxExact && std::fabs(*number) < 0x1.0p63)
    return "is not written as a whole number, as the value of --split is";
  *held_out = *number >= *number_;
  return "";
}

}  // namespace renzan
