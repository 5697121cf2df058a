#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace renzan {

// A check of an option for a whole number of at least `least`; CLI11's own names the range of
// double.
CLI::Validator AtLeast(int64_t least);

}  // namespace renzan
