#include "renzan/data/text/date.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <span>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr std::string_view kConversions = "YmdeHIMSpbafsQ%";
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kWeekdays[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr int64_t kHoursPerDay = 24, kSecondsPerHour = 3600;
// Beyond the years of a calendar.
constexpr int64_t kMaxSeconds = int64_t{1} << 38;

// Takes a number of `least` to `most` digits from the front of `text`.
bool TakeDigits(std::string_view* text, size_t least, size_t most, int* number) {
  size_t digits = 0;
  *number = 0;
  while (digits < most && digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9')
    *number = *number * 10 + ((*text)[digits++] - '0');
  text->remove_prefix(digits);
  return digits >= least;
}

// Takes one of these names of three letters, in any case; `index` is its place.
bool TakeName(std::string_view* text, std::span<const std::string_view> names, int* index) {
  std::string name(text->substr(0, 3));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return false;
  *index = static_cast<int>(found - names.begin());
  text->remove_prefix(name.size());
  return true;
}

bool TakeHalf(std::string_view* text, bool* is_pm) {
  if (text->size() < 2 || std::tolower(static_cast<unsigned char>((*text)[1])) != 'm') return false;
  const int half = std::tolower(static_cast<unsigned char>((*text)[0]));
  *is_pm = half == 'p';
  text->remove_prefix(2);
  return half == 'a' || half == 'p';
}

// Rounds down, also below 0. `divisor` is positive.
int64_t FloorDivided(int64_t number, int64_t divisor) {
  return (number - ((number % divisor) + divisor) % divisor) / divisor;
}

DateParts PartsOf(int64_t day, int64_t hour) {
  constexpr int64_t kThursday = 3;  // 1970-01-01
  return {.day = day, .weekday = ((day + kThursday) % 7 + 7) % 7, .hour = hour};
}

}  // namespace

DateParts PartsOfSeconds(int64_t seconds) {
  const int64_t hours = FloorDivided(seconds, kSecondsPerHour);
  const int64_t days = FloorDivided(hours, kHoursPerDay);
  return PartsOf(days, hours - days * kHoursPerDay);
}

bool DateFormat::Has(char conversion) const {
  for (size_t i = 0; i + 1 < format_.size(); ++i)
    if (format_[i] == '%' && format_[++i] == conversion) return true;
  return false;
}

bool DateFormat::has_day() const {
  return is_unix_time() || (Has('Y') && (Has('m') || Has('b')) && (Has('d') || Has('e')));
}

bool DateFormat::has_hour() const { return is_unix_time() || Has('H') || Has('I'); }

std::string DateFormat::Problem() const {
  for (size_t i = 0; i < format_.size(); ++i) {
    if (format_[i] != '%') continue;
    if (++i == format_.size() || kConversions.find(format_[i]) == std::string_view::npos)
      return fmt::format(
          "has '%{}': use %Y %m %d %e %H %I %p %M %S %b %a %f, or %s or %Q for seconds or "
          "milliseconds since 1970; write an offset from UTC as it is in the data",
          i < format_.size() ? format_.substr(i, 1) : "");
  }
  if (Has('I') != Has('p') || (Has('I') && Has('H')))
    return "must have %H, or both %I and %p (AM or PM)";
  if (Has('s') && Has('Q')) return "has both %s and %Q: choose one";
  return has_day() || has_hour() ? "" : "has neither %Y, %m and %d, nor %H, nor %s or %Q";
}

std::optional<int64_t> DateFormat::ParseSeconds(std::string_view text, bool* is_exact) const {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, fraction = 0, weekday = -1;
  bool is_pm = false;
  *is_exact = true;
  std::optional<int64_t> seconds;
  for (size_t i = 0; i < format_.size(); ++i) {
    const bool conversion = format_[i] == '%';
    if (conversion) ++i;
    bool good = true;
    switch (conversion ? format_[i] : '%') {
      case 'Y':
        good = TakeDigits(&text, 4, 4, &year);
        break;
      case 'm':
        good = TakeDigits(&text, 1, 2, &month);
        break;
      case 'd':
        good = TakeDigits(&text, 1, 2, &day);
        break;
      case 'e':
        if (text.starts_with(' ')) text.remove_prefix(1);
        good = TakeDigits(&text, 1, 2, &day);
        break;
      case 'H':
        good = TakeDigits(&text, 1, 2, &hour);
        break;
      case 'I':
        good = TakeDigits(&text, 1, 2, &hour) && hour >= 1 && hour <= 12;
        break;
      case 'p':
        good = TakeHalf(&text, &is_pm);
        break;
      case 'M':
        good = TakeDigits(&text, 1, 2, &minute);
        break;
      case 'S':
        good = TakeDigits(&text, 1, 2, &second);
        break;
      case 'f':
        good = TakeDigits(&text, 1, 9, &fraction);
        *is_exact &= fraction == 0;
        break;
      case 'b':
        good = TakeName(&text, kMonths, &month);
        ++month;
        break;
      case 'a':
        good = TakeName(&text, kWeekdays, &weekday);
        break;
      case 's':
      case 'Q': {
        const int64_t per_second = format_[i] == 'Q' ? 1000 : 1;
        int64_t value = 0;
        const auto [rest, error] = std::from_chars(text.begin(), text.end(), value);
        good = error == std::errc() && value > -kMaxSeconds * per_second &&
               value < kMaxSeconds * per_second;
        seconds = FloorDivided(value, per_second);
        *is_exact &= value % per_second == 0;
        text.remove_prefix(static_cast<size_t>(rest - text.begin()));
        break;
      }
      default:
        good = text.starts_with(format_[i]);
        if (good) text.remove_prefix(1);
    }
    if (!good) return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  if (Has('I')) hour = hour % 12 + (is_pm ? 12 : 0);
  if (seconds) return *seconds;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  constexpr int kLeapSecond = 60;
  if (!date.ok() || hour >= kHoursPerDay || minute >= 60 || second > kLeapSecond)
    return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  *is_exact &= second < kLeapSecond;
  if (weekday >= 0 && has_day() && weekday != PartsOf(days, hour).weekday) return std::nullopt;
  return ((days * kHoursPerDay + hour) * 60 + minute) * 60 + std::min(second, kLeapSecond - 1);
}

std::optional<DateParts> DateFormat::Parse(std::string_view text) const {
  const std::optional<int64_t> seconds = ParseSeconds(text);
  return seconds ? std::optional(PartsOfSeconds(*seconds)) : std::nullopt;
}

}  // namespace renzan
