#include "renzan/cluster/simulate/trace_values.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "renzan/base/ascii.h"
#include "renzan/base/duration.h"

namespace renzan::cluster::simulate {
namespace {

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<unsigned> TwoDigits(std::string_view text) {
  return text.size() == 2 ? ParseNumber<unsigned>(text) : std::nullopt;
}

// "", "Z" or "+01:00", in seconds.
std::optional<int64_t> ParseOffset(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = TwoDigits(text.substr(1, 2)), minutes = TwoDigits(text.substr(4, 2));
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int64_t seconds = *hours * 3600 + *minutes * 60;
  return text[0] == '-' ? -seconds : seconds;
}

std::optional<double> ParseTimestamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto year = ParseNumber<unsigned>(text.substr(0, 4));
  const auto part = [&](size_t from) { return TwoDigits(text.substr(from, 2)); };
  const auto month = part(5), day = part(8), hour = part(11), minute = part(14), second = part(17);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  std::string_view rest = text.substr(19);
  double fraction = 0;
  if (!rest.empty() && rest[0] == '.') {
    size_t end = 1;
    while (end < rest.size() && IsDigit(rest[end])) ++end;
    const auto value = ParseNumber<double>(rest.substr(0, end));
    if (!value) return std::nullopt;
    fraction = *value;
    rest.remove_prefix(end);
  }
  const auto offset = ParseOffset(rest);
  if (!offset) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days * 86400 + *hour * 3600 + *minute * 60 + *second - *offset) +
         fraction;
}

// "01:30:00", "30:00", "1-01:30:00".
std::optional<double> ParseClock(std::string_view text) {
  double days = 0;
  if (const size_t dash = text.find('-'); dash != text.npos) {
    const auto count = ParseWhole(text.substr(0, dash));
    if (!count || *count < 0) return std::nullopt;
    days = static_cast<double>(*count);
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  int parts = 0;
  for (bool last = false; !last; ++parts) {
    const size_t colon = text.find(':');
    last = colon == text.npos;
    const std::string_view part = text.substr(0, colon);
    // Only seconds have a fraction.
    const auto value =
        !last && !ParseNumber<unsigned>(part) ? std::nullopt : ParseNumber<double>(part);
    // Hours may exceed a day, where days are not counted.
    if (!value || !(*value >= 0) || (parts > 0 && *value >= 60)) return std::nullopt;
    seconds = seconds * 60 + *value;
    if (!last) text.remove_prefix(colon + 1);
  }
  if (parts < 2 || parts > 3) return std::nullopt;
  return days * 86400 + seconds;
}

// "1h30m": each unit at most once, the largest first.
std::optional<double> ParseUnits(std::string_view text) {
  double sum = 0, least = INFINITY;
  while (!text.empty()) {
    size_t end = text.find_first_not_of("0123456789.");
    while (end < text.size() && !IsDigit(text[end])) ++end;
    const std::string_view part = text.substr(0, end);
    const auto seconds = ParseDuration(part);
    const auto unit =
        ParseDuration("1" + std::string(part.substr(part.find_last_of("0123456789") + 1)));
    if (!seconds || !unit || *unit >= least) return std::nullopt;
    sum += *seconds;
    least = *unit;
    text.remove_prefix(part.size());
  }
  return std::isinf(least) ? std::nullopt : std::optional(sum);
}

}  // namespace

std::optional<std::vector<std::string>> SplitFields(std::string_view line, char separator) {
  std::vector<std::string> fields;
  const bool quotes = separator == ',';
  for (;;) {
    std::string& field = fields.emplace_back();
    if (quotes && !line.empty() && line[0] == '"') {
      size_t at = 1;
      for (;; ++at) {
        if (at >= line.size()) return std::nullopt;
        if (line[at] != '"') {
          field += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          field += line[++at];
        } else {
          break;
        }
      }
      line.remove_prefix(at + 1);
      if (!line.empty() && line[0] != separator) return std::nullopt;
    } else {
      field = line.substr(0, line.find(separator));
      line.remove_prefix(field.size());
    }
    if (line.empty()) return fields;
    line.remove_prefix(1);
  }
}

std::optional<double> ParseDecimal(std::string_view text) { return ParseNumber<double>(text); }

std::optional<int64_t> ParseWhole(std::string_view text) { return ParseNumber<int64_t>(text); }

std::optional<double> ParseSubmission(std::string_view text) {
  if (const auto seconds = ParseTimestamp(text)) return seconds;
  const auto seconds = ParseNumber<double>(text);
  return seconds && std::abs(*seconds) < 1e11 ? seconds : std::nullopt;
}

std::optional<double> ParseElapsed(std::string_view text) {
  if (const auto seconds = ParseNumber<double>(text)) return seconds;
  if (const auto seconds = ParseClock(text)) return seconds;
  return ParseUnits(text);
}

}  // namespace renzan::cluster::simulate
