#pragma once

// Formats amounts of time and memory for tables. Pure functions, except for the local time zone.

#include <cstdint>
#include <string>

#include "renzan/base/mebibytes.h"

namespace renzan {

// FormatDuration (base/duration.h) of milliseconds. Negative durations are "0s".
std::string DurationText(int64_t ms);

// The local time of a Unix time, "14:03:59"; with the date, "2026-01-31 14:03:59", if it is more
// than twelve hours from `now_ms`.
std::string LocalTimeText(int64_t unix_ms, int64_t now_ms);

// At most three decimals, without trailing zeros: "8", "0.5".
std::string NumberText(double number);

}  // namespace renzan
