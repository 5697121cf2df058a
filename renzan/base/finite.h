#pragma once

// Whether numbers are numbers. Thread-safe.

#include <span>

namespace renzan {

// True unless a value is NaN or infinite. Runs at the speed of memory.
bool AllFinite(std::span<const float> values);

}  // namespace renzan
