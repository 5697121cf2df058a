#pragma once

#include <string>
#include <string_view>

namespace renzan {

// As many bytes as FailUnlessText() looks at.
inline constexpr size_t kNotTextBytes = 12;

// Throws kData if a file that begins with `start` is known not to be text in UTF-8 or another
// superset of ASCII, with what it is and how to convert it.
void FailUnlessText(std::string_view start, const std::string& file);

}  // namespace renzan
