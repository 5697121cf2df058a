#pragma once

// Times that users type.

#include <cstdint>
#include <optional>
#include <string_view>

namespace renzan {

// "2026-01-31" (when that day begins), "2026-01-31 14:03" or "2026-01-31T14:03:59" in the local
// time zone; with a time also in another one, "…Z" or "…+01:00". To Unix milliseconds.
std::optional<int64_t> ParseMoment(std::string_view text);
inline constexpr const char* kMomentRule =
    "must be a date such as 2026-01-31, or a time such as 2026-01-31T14:03:59, of the local time "
    "zone or with Z or +01:00";

}  // namespace renzan
