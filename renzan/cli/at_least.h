#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace renzan {

// A check of an option for a whole number of at least `least`; CLI11's own names the range of
// double.
CLI::Validator AtLeast(int64_t least);

}  // namespace renzan
