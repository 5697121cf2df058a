#pragma once

// A check for NaN and infinity. Thread-safe.

#include <span>

namespace renzan {

// True unless a value is NaN or infinite. Runs at memory bandwidth.
bool AllFinite(std::span<const float> values);

}  // namespace renzan
