#pragma once

// Points in time as the API writes them.

#include <optional>
#include <string>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

// "2026-02-03T04:05:06Z" (or with a fraction) to Unix milliseconds.
std::optional<TimeMs> ParseTime(std::string_view text);
// Whole seconds, as metav1.Time requires.
std::string TimeText(TimeMs time);
// With microseconds, as metav1.MicroTime requires.
std::string MicroTimeText(double unix_seconds);

}  // namespace renzan::cluster::kubernetes
