// The eight tile registers of Intel's AMX, each of up to 16 rows of 16 lanes, and an emulation of
// what products of bfloat16 do with them (TDPBF16PS in Intel's "64 and IA-32 Architectures Software
// Developer's Manual"). Both flush denormal numbers; the emulation relies on FlushDenormals for
// that.

#if defined(RENZAN_NN_TILE_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_TILE_REGISTERS_INL_H_
#undef RENZAN_NN_TILE_REGISTERS_INL_H_
#else
#define RENZAN_NN_TILE_REGISTERS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/nn/gemm_operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kTileRegisters = 8;

// The number of rows of each register.
struct TileShape {
  int rows[kTileRegisters];
};

#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX3
// Assembly, because the intrinsics need a compiler option that would let the compiler use AMX
// elsewhere.
struct HardwareTiles {
  static constexpr bool kRoundsLines = true;  // every processor with AMX has AVX512_BF16

  static HWY_INLINE void Configure(const TileShape& shape) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes_per_row[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int t = 0; t < kTileRegisters; ++t) {
      config.bytes_per_row[t] = kBlock * sizeof(float);
      config.rows[t] = static_cast<uint8_t>(shape.rows[t]);
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  static HWY_INLINE void Release() { asm volatile("tilerelease"); }

  // Rows are `stride` lanes apart.
  template <int kTile>
  static HWY_INLINE void Load(const float* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride * int64_t{sizeof(float)}), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static HWY_INLINE void Store(float* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride * int64_t{sizeof(float)}), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static HWY_INLINE void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kC, int kA, int kB>
  static HWY_INLINE void MultiplyAdd() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};
#endif

struct EmulatedTiles {
  static constexpr bool kRoundsLines = false;

  struct Registers {
    alignas(64) float lanes[kTileRegisters][kBlock * kBlock];
    TileShape shape;
  };
  static Registers& OfThisThread() {
    thread_local Registers registers;
    return registers;
  }

  static void Configure(const TileShape& shape) { OfThisThread().shape = shape; }
  static void Release() {}

  template <int kTile>
  static void Load(const float* from, int64_t stride) {
    Registers& registers = OfThisThread();
    for (int64_t row = 0; row < registers.shape.rows[kTile]; ++row)
      std::copy_n(from + row * stride, kBlock, registers.lanes[kTile] + row * kBlock);
  }
  template <int kTile>
  static void Store(float* to, int64_t stride) {
    const Registers& registers = OfThisThread();
    for (int64_t row = 0; row < registers.shape.rows[kTile]; ++row)
      std::copy_n(registers.lanes[kTile] + row * kBlock, kBlock, to + row * stride);
  }
  template <int kTile>
  static void Zero() {
    std::fill_n(OfThisThread().lanes[kTile], kBlock * kBlock, 0.0f);
  }

  // C[i, j] += Σ_p A[i, 2p]·B[2p, j] + Σ_p A[i, 2p + 1]·B[2p + 1, j]: two chains of 16 fused
  // multiply-adds from zero; their sum is added to C.
  template <int kC, int kA, int kB>
  static void MultiplyAdd() {
    constexpr int kRows = 4;  // at a time; rows that C does not have hold anything
    Registers& registers = OfThisThread();
    const Tag d;
    for (int64_t row = 0; row < registers.shape.rows[kC]; row += kRows) {
      const float* a = registers.lanes[kA] + row * kBlock;
      float* c = registers.lanes[kC] + row * kBlock;
      for (int64_t lane = 0; lane < kBlock; lane += static_cast<int64_t>(hn::Lanes(d))) {
        hn::Vec<Tag> even[kRows], odd[kRows];
        for (int i = 0; i < kRows; ++i) even[i] = odd[i] = hn::Zero(d);
        for (int64_t p = 0; p < kBlock; ++p) {
          const auto b = hn::Load(d, registers.lanes[kB] + p * kBlock + lane);
          const auto b_low = LowHalf(b), b_high = HighHalf(b);
          for (int i = 0; i < kRows; ++i) {
            const auto pair = hn::Set(d, a[i * kBlock + p]);
            even[i] = hn::MulAdd(LowHalf(pair), b_low, even[i]);
            odd[i] = hn::MulAdd(HighHalf(pair), b_high, odd[i]);
          }
        }
        for (int i = 0; i < kRows; ++i) {
          float* to = c + i * kBlock + lane;
          hn::Store(hn::Add(hn::Load(d, to), hn::Add(even[i], odd[i])), d, to);
        }
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
