#pragma once

#include <optional>
#include <string_view>

namespace renzan {

// Seconds, from a duration as people write it: a decimal number and one unit of ms, s, m, h and d
// ("250ms", "90s", "1.5h", "2d"), or "0". Nothing else is a duration: no number without a unit, no
// sign, no blanks, no exponent, nothing too large for a double.
std::optional<double> ParseDuration(std::string_view text);

}  // namespace renzan
