#pragma once

// Numbers with what they count.

#include <cstdint>
#include <string>
#include <string_view>

namespace renzan {

// "1 step", "2 steps"; the plural is `one` with an s, unless it is given. Texts with a number that
// may be 1 use this (tests/counts.py finds "{} steps"), and no verb that would have to agree.
std::string Counted(int64_t number, std::string_view one, std::string_view plural = {});

// The same of a number that is text already: "0.5 cores".
std::string Counted(std::string_view number, std::string_view one, std::string_view plural = {});

}  // namespace renzan
