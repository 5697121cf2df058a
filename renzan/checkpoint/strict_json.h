#pragma once

// Checks that the JSON parser does not make.

#include <cstddef>
#include <string_view>

namespace renzan {

// Checks that `text` is one JSON value, at most `max_depth` objects and arrays deep, without a key
// twice in one object and without numbers that are not whole (or too large to be). Throws Error
// kData with a sentence that begins with `what`: "its header".
void CheckStrictJson(std::string_view text, size_t max_depth, std::string_view what);

}  // namespace renzan
