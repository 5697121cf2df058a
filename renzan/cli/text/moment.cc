#include "renzan/cli/text/moment.h"

#include <ctime>
#include <string>

namespace renzan {
namespace {

// Reads exactly as many digits as `digits` has, into a number from `least` to `most`.
bool TakeNumber(std::string_view& text, size_t digits, int least, int most, int& number) {
  if (text.size() < digits) return false;
  number = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return least <= number && number <= most;
}

bool Take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "Z" or "+01:00", in seconds; nothing for anything else.
std::optional<int> Offset(std::string_view text) {
  if (text == "Z") return 0;
  const bool west = text.starts_with('-');
  int hours = 0, minutes = 0;
  if (!Take(text, "+-") || !TakeNumber(text, 2, 0, 23, hours) || !Take(text, ":") ||
      !TakeNumber(text, 2, 0, 59, minutes) || !text.empty())
    return std::nullopt;
  return (west ? -1 : 1) * (hours * 3600 + minutes * 60);
}

}  // namespace

std::optional<int64_t> ParseMoment(std::string_view text) {
  std::tm parts{};
  if (!TakeNumber(text, 4, 1970, 9999, parts.tm_year) || !Take(text, "-") ||
      !TakeNumber(text, 2, 1, 12, parts.tm_mon) || !Take(text, "-") ||
      !TakeNumber(text, 2, 1, 31, parts.tm_mday))
    return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const bool has_time = Take(text, "T ");
  if (has_time && (!TakeNumber(text, 2, 0, 23, parts.tm_hour) || !Take(text, ":") ||
                   !TakeNumber(text, 2, 0, 59, parts.tm_min)))
    return std::nullopt;
  if (has_time && Take(text, ":") && !TakeNumber(text, 2, 0, 59, parts.tm_sec)) return std::nullopt;
  const int day = parts.tm_mday;
  std::time_t seconds = 0;
  if (text.empty()) {
    parts.tm_isdst = -1;
    seconds = std::mktime(&parts);
  } else {
    const std::optional<int> offset = Offset(text);
    if (!has_time || !offset) return std::nullopt;
    seconds = ::timegm(&parts);
    if (parts.tm_mday == day) return (int64_t{seconds} - *offset) * 1000;
  }
  // The 31st of a month with 30 days would be the next one.
  return parts.tm_mday == day ? std::optional(int64_t{seconds} * 1000) : std::nullopt;
}

}  // namespace renzan
