#pragma once

// Numbers in fields of text.

#include <optional>
#include <string_view>

namespace renzan {

// The whole of `text` as a decimal number, or "nan" or "inf", with an optional sign; nothing for
// any other text, and for a number that a double cannot hold.
std::optional<double> ParseNumber(std::string_view text);

}  // namespace renzan
