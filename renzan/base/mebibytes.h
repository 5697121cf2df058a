#pragma once

// Amounts of memory and disk as users write them. Pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// "512MiB", "32GiB", "1.5TiB" (also KiB, PiB, and a plain number of bytes) to MiB, rounded up. For
// Describe(), which only needs a yes or no.
std::optional<int64_t> TryParseMebibytes(std::string_view text);
// The same; throws Error kConfig with the violated rule.
int64_t ParseMebibytes(std::string_view text);
inline constexpr const char* kMemoryRule =
    "must be an amount such as 512MiB, 32GiB or 1.5TiB, or a number of bytes, at most 64PiB";

// "0", "512MiB", "1.5GiB".
std::string MebibytesText(int64_t mebibytes);

}  // namespace renzan
