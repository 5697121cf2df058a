#pragma once

// While it lives, this thread's arithmetic reads denormal numbers as zero and flushes denormal
// results to zero, as the processors' bfloat16 products do.

#include <cstdint>

namespace renzan {

class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;  // the floating-point control register
};

}  // namespace renzan
