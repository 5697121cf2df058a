// Products of bfloat16 in tile registers, up to 32 rows and columns at a time. For gemm_tiles.cc
// and gradient_tiles.cc, which Highway compiles once per target.

#if defined(RENZAN_NN_GEMM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_GEMM_TILES_INL_H_
#undef RENZAN_NN_GEMM_TILES_INL_H_
#else
#define RENZAN_NN_GEMM_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/nn/gemm_operands-inl.h"
#include "renzan/nn/gemm_results-inl.h"
#include "renzan/nn/tile_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Registers 0 to 3 are C, two by two; 4 and 5 are A, one above the other; 6 and 7 are B, side by
// side.
inline TileShape ShapeFor(int64_t rows) {
  const int upper = static_cast<int>(std::min(rows, kBlock));
  const int lower = static_cast<int>(std::max<int64_t>(rows, kBlock + 1) - kBlock);
  return {{upper, upper, lower, lower, upper, lower, kBlock, kBlock}};
}

// What is left to do for the previous tile, done while the tile registers multiply.
class Unfinished {
 public:
  // `r` is for 32 columns; the caller writes the sums [rows, 32] to sums() next.
  void Begin(int64_t rows, const Results& r) {
    rows_ = rows;
    done_ = 0;
    results_ = r;
    in_second_ = !in_second_;
  }
  float* sums() { return sums_[in_second_]; }
  int64_t rows() const { return rows_ - done_; }
  void FinishRows([[maybe_unused]] int64_t count) {
#if HWY_TARGET == HWY_AVX3
    const int64_t end = std::min(rows_, done_ + count);
    FinishLines(sums(), done_, end, results_);
    done_ = end;
#endif
  }

 private:
  HWY_ALIGN float sums_[2][2 * kBlock * 2 * kBlock];
  bool in_second_ = false;
  int64_t rows_ = 0, done_ = 0;
  Results results_ = {};
};

// Sets the registers of C, which has `rows` rows, to what its sums start with.
template <class Tiles, bool kTwoRows, bool kTwoBlocks>
HWY_INLINE void Begin(int64_t rows, const Results& r) {
  if (r.bias == nullptr && !r.accumulate) {
    Tiles::template Zero<0>();
    if (kTwoBlocks) Tiles::template Zero<1>();
    if (kTwoRows) Tiles::template Zero<2>();
    if (kTwoRows && kTwoBlocks) Tiles::template Zero<3>();
    return;
  }
  constexpr int64_t kBlocks = kTwoBlocks ? 2 : 1;
  const auto load = [](const float* start, int64_t stride) {
    Tiles::template Load<0>(start, stride);
    if (kTwoBlocks) Tiles::template Load<1>(start + kBlock, stride);
    if (kTwoRows) Tiles::template Load<2>(start + kBlock * stride, stride);
    if (kTwoRows && kTwoBlocks) Tiles::template Load<3>(start + kBlock * stride + kBlock, stride);
  };
  // Sums that start with the bias start alike in all rows.
  if (!r.accumulate && (r.first_block + kBlocks) * kBlock <= r.columns)
    return load(r.bias + r.first_block * kBlock, 0);
  const Tag d;
  HWY_ALIGN float start[2 * kBlock * kBlocks * kBlock];
  const int64_t stride = r.accumulate ? kBlocks * kBlock : 0;
  for (int64_t i = 0; i < (r.accumulate ? rows : 1); ++i) {
    for (int64_t j = 0; j < kBlocks; ++j) {
      const int64_t block = r.first_block + j;
      for (int64_t lane = 0; lane < kBlock; lane += static_cast<int64_t>(hn::Lanes(d))) {
        const int64_t column = block * kBlock + lane;
        hn::Store(!r.accumulate ? LoadFirst(d, r.bias + column, r.columns - column)
                  : r.bfloat16  ? LoadBFloat16(d, BFloat16At(r.c, r.c_block, i, block) + lane)
                                : LoadFirst(d, r.c + i * r.c_row + block * r.c_block + lane,
                                            r.columns - column),
                  d, start + i * stride + j * kBlock + lane);
      }
    }
  }
  load(start, stride);
}

// Stores the registers of C.
template <class Tiles, bool kTwoRows, bool kTwoBlocks>
HWY_INLINE void End(int64_t rows, const Results& r, Unfinished* unfinished) {
  const auto store = [](float* to, int64_t row, int64_t block) {
    Tiles::template Store<0>(to, row);
    if (kTwoBlocks) Tiles::template Store<1>(to + block, row);
    if (kTwoRows) Tiles::template Store<2>(to + kBlock * row, row);
    if (kTwoRows && kTwoBlocks) Tiles::template Store<3>(to + kBlock * row + block, row);
  };
  if (Tiles::kRoundsLines && r.bfloat16) {
    unfinished->Begin(rows, r);
    return store(unfinished->sums(), 2 * kBlock, kBlock);
  }
  constexpr int64_t kBlocks = kTwoBlocks ? 2 : 1;
  const bool whole = (r.first_block + kBlocks) * kBlock <= r.columns;
  if (whole && !r.bfloat16 && !r.relu && r.mask == nullptr)
    return store(r.c + r.first_block * r.c_block, r.c_row, r.c_block);
  HWY_ALIGN float sums[2 * kBlock * kBlocks * kBlock];
  store(sums, kBlocks * kBlock, kBlock);
  Finish(sums, rows, kBlocks, r);
}

// Operands of tiles, in lanes. Element (i, k) of A is at a[i·16 + k] within a block of 16 k; blocks
// are a_block apart. Element (k, j) of B is at b[k·16 + j].
struct Operands {
  int64_t k;
  const float* a;
  int64_t a_block;
  const float* b;
  int64_t b_block;
  // Prefetched into the second-level cache meanwhile: next_lines lines for every 16 k, and then on
  // by next_step lanes.
  const float* next;
  int64_t next_lines, next_step;
};

// Up to 32 rows and 32 columns of C.
template <class Tiles, bool kTwoRows, bool kTwoBlocks>
HWY_NOINLINE void Tile(int64_t rows, const Operands& p, const Results& r, Unfinished* unfinished) {
  Begin<Tiles, kTwoRows, kTwoBlocks>(rows, r);
  const float* a = p.a;
  const float* b = p.b;
  const float* next = p.next;
  const int64_t rows_at_once = (unfinished->rows() * kBlock + p.k - 1) / std::max(p.k, kBlock);
  for (int64_t k0 = 0; k0 < p.k; k0 += kBlock, a += p.a_block, b += kBlock * kBlock) {
    for (int64_t line = 0; line < p.next_lines; ++line)
      __builtin_prefetch(next + line * kBlock, 0, 2);
    next += p.next_step;
    Tiles::template Load<6>(b, kBlock);
    Tiles::template Load<4>(a, kBlock);
    Tiles::template MultiplyAdd<0, 4, 6>();
    if (kTwoRows) {
      Tiles::template Load<5>(a + kBlock * kBlock, kBlock);
      Tiles::template MultiplyAdd<2, 5, 6>();
    }
    if (kTwoBlocks) {
      Tiles::template Load<7>(b + p.b_block, kBlock);
      Tiles::template MultiplyAdd<1, 4, 7>();
    }
    if (kTwoRows && kTwoBlocks) Tiles::template MultiplyAdd<3, 5, 7>();
    if (rows_at_once > 0) unfinished->FinishRows(rows_at_once);
  }
  unfinished->FinishRows(unfinished->rows());
  End<Tiles, kTwoRows, kTwoBlocks>(rows, r, unfinished);
}

// Up to 32 rows of C and two blocks of 16 columns, or the last one.
template <class Tiles>
HWY_INLINE void AnyTile(int64_t rows, bool two_blocks, const Operands& p, const Results& r,
                        Unfinished* unfinished) {
  if (rows > kBlock) {
    two_blocks ? Tile<Tiles, true, true>(rows, p, r, unfinished)
               : Tile<Tiles, true, false>(rows, p, r, unfinished);
  } else {
    two_blocks ? Tile<Tiles, false, true>(rows, p, r, unfinished)
               : Tile<Tiles, false, false>(rows, p, r, unfinished);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
