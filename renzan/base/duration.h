#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// Parses a duration into seconds: a decimal number and one of the units ms, s, m, h and d ("250ms",
// "90s", "1.5h", "2d"), or "0". Rejects numbers without a unit, signs, blanks, exponents and values
// too large for a double.
std::optional<double> ParseDuration(std::string_view text);

// At most two units, rounded down: "0s", "59s", "3m12s", "2h05m", "3d04h". Not negative.
std::string FormatDuration(int64_t seconds);

}  // namespace renzan
