#pragma once

// Parsing and printing of amounts in configuration files. Pure functions. The Try functions are for
// Describe(), which only needs a yes or no; the others throw Error kConfig with the violated rule.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "renzan/base/mebibytes.h"

namespace renzan::cluster::spec {

using renzan::kMemoryRule;
using renzan::MebibytesText;
using renzan::ParseMebibytes;
using renzan::TryParseMebibytes;

inline constexpr int kMaxWorkers = 100'000;

// From `min` to `max`, inclusive.
struct Range {
  int min, max;
  bool operator==(const Range&) const = default;
};
// "2" to {2, 2}, "2..8" to {2, 8}; none if min > max or max > kMaxWorkers.
std::optional<Range> TryParseRange(std::string_view text);

// The workers of a gang: at least one.
Range ParseReplicas(std::string_view text);
inline constexpr const char* kReplicasRule =
    "must be a number of workers such as 4, or a range minimum..maximum such as 2..8, from 1 to "
    "100000";

// A duration as in ParseDuration(), in milliseconds, at least 1 unless it is 0; none if it is
// longer than ten years.
std::optional<int64_t> TryParseMilliseconds(std::string_view text);
inline constexpr const char* kDurationRule =
    "must be a duration such as 90s, 10m or 1.5h, or 0, at most ten years";

}  // namespace renzan::cluster::spec
