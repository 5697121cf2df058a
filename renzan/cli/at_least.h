#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace renzan {

// Checks that an option is a whole number of at least `least`. CLI11's own check would print the
// range of double.
CLI::Validator AtLeast(int64_t least);

}  // namespace renzan
