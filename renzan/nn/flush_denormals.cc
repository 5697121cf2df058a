#include "renzan/nn/flush_denormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace renzan {

#if defined(__x86_64__)

FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZeros = 1u << 6;
  _mm_setcsr(static_cast<unsigned>(saved_) | kFlushToZero | kDenormalsAreZeros);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }

#elif defined(__aarch64__)

FlushDenormals::FlushDenormals() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(saved_ | uint64_t{1} << 24));
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

#endif

}  // namespace renzan
