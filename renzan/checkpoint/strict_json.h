#pragma once

// Checks that the JSON parser does not make itself.

#include <cstddef>
#include <string_view>

namespace renzan {

// Checks that `text` is one JSON value, nested at most `max_depth` objects and arrays deep, without
// duplicate keys in an object, and without numbers that are fractional or beyond 64 bits. Throws
// Error kData, whose message begins with `what`: "its header".
void CheckStrictJson(std::string_view text, size_t max_depth, std::string_view what);

}  // namespace renzan
