#include "renzan/roofline/int8_rate.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "renzan/nn/isa.h"
#include "renzan/roofline/median_rate.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace renzan {

#if defined(__x86_64__)
namespace {

// A matrix of 16 rows of 64 int8 in one tile register of AMX.
constexpr int kTileBytes = 1024;

// C [32, 32] += A [32, 64·depth] · B [64·depth, 32] in tile registers: `a` and `b` are pairs of
// tiles.
void ProductInTiles(const std::byte* a, const std::byte* b, int depth) {
  constexpr int64_t kStride = 64;
  for (int k = 0; k < depth; ++k, a += 2 * kTileBytes, b += 2 * kTileBytes)
    asm volatile(
        "tileloadd (%0,%2,1), %%tmm4\n tileloadd (%1,%2,1), %%tmm6\n"
        "tdpbssd %%tmm6, %%tmm4, %%tmm0\n tileloadd 1024(%0,%2,1), %%tmm5\n"
        "tdpbssd %%tmm6, %%tmm5, %%tmm2\n tileloadd 1024(%1,%2,1), %%tmm7\n"
        "tdpbssd %%tmm7, %%tmm4, %%tmm1\n tdpbssd %%tmm7, %%tmm5, %%tmm3"
        :
        : "r"(a), "r"(b), "r"(kStride)
        : "memory");
}

double MeasureInTiles(ThreadPool& pool) {
  constexpr int kDepth = 8, kProducts = 20000;
  return MedianRate([&] {
    pool.RunOnAll([&](int) {
      struct alignas(64) {
        uint8_t palette = 1, start_row = 0, reserved[14] = {};
        uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
      } config;
      // Not zeros: products of zeros take less power, and so less time.
      std::vector<std::byte> a(2 * kTileBytes * kDepth), b(a.size());
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = b[a.size() - 1 - i] = static_cast<std::byte>(i * 37);
      asm volatile("ldtilecfg %0" : : "m"(config));
      for (int i = 0; i < kProducts; ++i) ProductInTiles(a.data(), b.data(), kDepth);
      asm volatile("tilerelease");
    });
    return 2.0 * kProducts * 32 * 32 * 64 * kDepth * pool.num_threads();
  });
}

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

double MeasureInVectors(ThreadPool& pool) {
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

}  // namespace

Int8Rate MeasureInt8Rate(ThreadPool& pool) {
  // What has tile registers for bfloat16 has them for int8.
  if (HasTileRegisters()) return {"amx", MeasureInTiles(pool)};
  if (__builtin_cpu_supports("avx512vnni")) return {"avx512_vnni", MeasureInVectors(pool)};
  return {};
}
#else
Int8Rate MeasureInt8Rate(ThreadPool&) { return {}; }
#endif

}  // namespace renzan
