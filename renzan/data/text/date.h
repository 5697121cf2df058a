#pragma once

// Reads dates and times as text into the numbers that models can use.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace renzan {

struct DateParts {
  int64_t day = 0;      // since 1970-01-01
  int64_t weekday = 0;  // 0: Monday
  int64_t hour = 0;     // 0 to 23
};

// Of a moment, in seconds since 1970.
DateParts PartsOfSeconds(int64_t seconds);

// As in strptime: %Y (four digits), %m, %d, %H, %I with %p (AM or PM), %M, %S (one or two digits),
// %e (a day that may begin with a blank), %b (Jan), %a (Mon; a date of another weekday does not
// exist), %f (digits after the second, which are ignored), %s and %Q (seconds and milliseconds
// since 1970, in UTC) and %%; everything else stands for itself. Times are taken as written: there
// are no time zones.
class DateFormat {
 public:
  explicit DateFormat(std::string format) : format_(std::move(format)) {}

  // What is wrong with the format, or "".
  std::string Problem() const;
  bool has_day() const;
  bool has_hour() const;

  // Nothing unless the whole text is a date that exists.
  std::optional<DateParts> Parse(std::string_view text) const;
  // The same as seconds since 1970; those of a format without a day count from midnight.
  std::optional<int64_t> ParseSeconds(std::string_view text) const {
    bool is_exact = true;
    return ParseSeconds(text, &is_exact);
  }
  // *is_exact: whether the text says no more than that, neither parts of a second nor a leap
  // second.
  std::optional<int64_t> ParseSeconds(std::string_view text, bool* is_exact) const;

  const std::string& text() const { return format_; }

 private:
  bool Has(char conversion) const;
  bool is_unix_time() const { return Has('s') || Has('Q'); }

  std::string format_;
};

}  // namespace renzan
