#include "renzan/roofline/int8_rate.h"

#include <cstdint>
#include <vector>

#include "renzan/roofline/median_rate.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace renzan {

#if defined(__x86_64__)
namespace {

constexpr int kRows = 6, kVectors = 4, kDepth = 128;  // in groups of four int8

// c [kRows, kVectors·16] = a [kRows, kDepth] · b [kDepth, kVectors·16], in groups of four.
__attribute__((target("avx512f,avx512vnni"))) void Product(const int32_t* a, const int32_t* b,
                                                           int32_t* c) {
  __m512i sum[kRows][kVectors] = {};
  for (int k = 0; k < kDepth; ++k) {
    __m512i column[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) column[v] = _mm512_loadu_si512(b + (k * kVectors + v) * 16);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      const __m512i value = _mm512_set1_epi32(a[row * kDepth + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        // With the intrinsic, GCC 12 copies the sums to and from the stack.
        asm("vpdpbusd %2, %1, %0" : "+v"(sum[row][v]) : "v"(value), "v"(column[v]));
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      _mm512_storeu_si512(c + (row * kVectors + v) * 16, sum[row][v]);
  }
}

}  // namespace

double MeasureMatrixInt8Ops(ThreadPool& pool) {
  if (!__builtin_cpu_supports("avx512vnni")) return 0;
  constexpr int kProducts = 8000;
  return MedianRate([&] {
    pool.RunOnAll([&](int) {
      const std::vector<int32_t> a(kRows * kDepth, 0x01020304),
          b(kDepth * kVectors * 16, 0x01010101);
      std::vector<int32_t> c(kRows * kVectors * 16);
      for (int i = 0; i < kProducts; ++i) {
        Product(a.data(), b.data(), c.data());
        asm volatile("" : : "r"(c.data()) : "memory");  // every product is needed
      }
    });
    return 2.0 * kProducts * kRows * kVectors * 16 * 4 * kDepth * pool.num_threads();
  });
}
#else
double MeasureMatrixInt8Ops(ThreadPool&) { return 0; }
#endif

}  // namespace renzan
