#pragma once

// The values of recorded workloads, as they are commonly written. Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renzan::cluster::simulate {

// The fields of a line; of CSV as in RFC 4180 ("a ""b"", c" is one field), except that none
// contains a newline. None if a quote is not closed, or is followed by something else than
// `separator`. Other separators have no quotes.
std::optional<std::vector<std::string>> SplitFields(std::string_view line, char separator);

// A whole or decimal number, without blanks.
std::optional<double> ParseDecimal(std::string_view text);
std::optional<int64_t> ParseWhole(std::string_view text);

// "2017-10-09 07:01:55" or "2017-10-09T07:01:55", perhaps with a fraction and with "Z" or an offset
// such as "+01:00": seconds since 1970, taken as UTC where nothing else is said. Or a number of
// seconds, since 1970 or any other time.
std::optional<double> ParseSubmission(std::string_view text);

// Seconds: "5400", "5400.5", "1h30m", "01:30:00", "30:00" (minutes), "1-01:30:00" (a day).
std::optional<double> ParseElapsed(std::string_view text);

}  // namespace renzan::cluster::simulate
