#pragma once

// While it lives, this thread's arithmetic takes denormal numbers for zero and gives zero instead
// of them, as the processors' products of bfloat16 do.

#include <cstdint>

namespace renzan {

class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;  // the control register of floating-point arithmetic
};

}  // namespace renzan
