#pragma once

#include <cstddef>
#include <string_view>

namespace renzan {

// The number of bytes of the first character of `text`; 0 if it is invalid UTF-8, or `text` is
// empty.
size_t FirstUtf8Bytes(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace renzan
