#include "renzan/data/row_split.h"

#include <xxhash.h>

#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/philox.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

bool IsIsoTime(const std::string& text) {
  return DateFormat("%Y-%m-%d").Parse(text) || DateFormat("%Y-%m-%d %H:%M:%S").Parse(text);
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
  number_ = ParseNumber(value_);
}

void RowSplit::SetDateFormat(const std::string& format) {
  if (kind_ != Kind::kTime || format.empty()) return;
  date_format_ = format;
  if (format != kIsoTimes) seconds_ = DateFormat(format).ParseSeconds(value_);
  if (format == kIsoTimes ? !IsIsoTime(value_) : !seconds_)
    Fail(ErrorCode::kUsage, "--split {}: '{}' is not a date of the column's format '{}'", text_,
         Escape(value_), format == kIsoTimes ? "%Y-%m-%d' or '%Y-%m-%d %H:%M:%S" : format);
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
  if (seconds_) {
    const std::optional<int64_t> seconds = DateFormat(date_format_).ParseSeconds(field);
    if (!seconds) return fmt::format("is not a date of the format '{}'", date_format_);
    *held_out = *seconds >= *seconds_;
  } else if (number_ && date_format_.empty()) {
    const std::optional<double> number = ParseNumber(field);
    if (!number || std::isnan(*number)) return "is not a number, as the value of --split is";
    *held_out = *number >= *number_;
  } else {
    *held_out = field >= value_;
  }
  return "";
}

}  // namespace renzan
