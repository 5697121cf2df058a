#pragma once

// Amounts of time and memory as tables show them. Pure functions, but for the local time zone.

#include <cstdint>
#include <string>

#include "renzan/cluster/spec/amounts.h"

namespace renzan {

// At most two units, rounded down: "0s", "59s", "3m12s", "2h05m", "3d04h". Negative ones are "0s".
std::string DurationText(int64_t ms);

// The local time of a Unix time, "14:03:59"; with the date before it, "2026-01-31 14:03:59", when
// it is more than twelve hours from `now_ms`.
std::string LocalTimeText(int64_t unix_ms, int64_t now_ms);

using cluster::spec::MebibytesText;

// At most three decimals, without zeros at the end: "8", "0.5".
std::string NumberText(double number);

}  // namespace renzan
