#include "renzan/nn/gemm_tiles.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/gemm_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/gemm_operands-inl.h"
#include "renzan/nn/gemm_results-inl.h"
#include "renzan/nn/tile_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Registers 0 to 3 are C, two by two; 4 and 5 are A, below each other; 6 and 7 are B, side by side.
TileShape ShapeFor(int64_t rows) {
  const int upper = static_cast<int>(std::min(rows, kBlock));
  const int lower = static_cast<int>(std::max<int64_t>(rows, kBlock + 1) - kBlock);
  return {{upper, upper, lower, lower, upper, lower, kBlock, kBlock}};
}

// What is left to do for the tile before: meanwhile the tile registers multiply.
class Unfinished {
 public:
  // `r` is that of 32 columns; the sums [rows, 32] are written to sums() next.
  void Begin(int64_t rows, const Results& r) {
    rows_ = rows;
    done_ = 0;
    results_ = r;
    in_second_ = !in_second_;
  }
  float* sums() { return sums_[in_second_]; }
  int64_t rows() const { return rows_ - done_; }
  void FinishRows(int64_t count) {
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

// Sets C's registers for `rows` rows to what the sums start with.
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
  // All rows are the same one where the sums start with the bias.
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

// C's registers to C.
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

// Operands of tiles. Element (i, k) of A, in lanes, is at a[i·16 + k] within a block of 16 k, which
// are a_block apart, and B's element (k, j) at b[k·16 + j].
struct Operands {
  int64_t k;
  const float* a;
  int64_t a_block;
  const float* b;
  int64_t b_block;
  // Comes into the second-level cache meanwhile: this many lines for every 16 k.
  const float* next_b;
  int64_t next_b_lines;
};

// Up to 32 rows and 32 columns of C.
template <class Tiles, bool kTwoRows, bool kTwoBlocks>
HWY_NOINLINE void Tile(int64_t rows, const Operands& p, const Results& r, Unfinished* unfinished) {
  // Row-major results are too far apart for the processor to expect them.
  if (!r.bfloat16) {
    const float* c = r.c + r.first_block * r.c_block;
    for (int64_t i = 0; i < rows; ++i, c += r.c_row) {
      __builtin_prefetch(c, 1);
      if (kTwoBlocks) __builtin_prefetch(c + kBlock, 1);
    }
  }
  Begin<Tiles, kTwoRows, kTwoBlocks>(rows, r);
  const float* a = p.a;
  const float* b = p.b;
  const float* next_b = p.next_b;
  const int64_t rows_at_once = (unfinished->rows() * kBlock + p.k - 1) / std::max(p.k, kBlock);
  for (int64_t k0 = 0; k0 < p.k; k0 += kBlock, a += p.a_block, b += kBlock * kBlock) {
    for (int64_t line = 0; line < p.next_b_lines; ++line, next_b += kBlock)
      __builtin_prefetch(next_b, 0, 2);
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

// Rows [begin, end) of C, whose tiles all have the same shape.
template <class Tiles>
void TilesOfRows(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results,
                 int64_t begin, int64_t end) {
  const int64_t rows = std::min(2 * kBlock, end - begin);
  const int64_t steps = (end - begin) / rows * (b.rows() / kBlock);
  Tiles::Configure(ShapeFor(rows));
  Unfinished unfinished;
  for (int64_t block = 0; block < b.num_blocks(); block += 2) {
    const int64_t next = std::min<int64_t>(2, std::max<int64_t>(0, b.num_blocks() - block - 2));
    Operands p{
        .k = b.rows(),
        .a_block = a.block_stride(),
        .b = b.block(block),
        .b_block = b.block_stride(),
        .next_b = b.block(next > 0 ? block + 2 : block),
        .next_b_lines = steps == 0 ? 0 : (next * b.block_stride() / kBlock + steps - 1) / steps};
    const bool two_blocks = block + 1 < b.num_blocks();
    for (int64_t i = begin; i < end; i += rows) {
      p.a = a.block(0) + i * kBlock;
      Results r = results;
      MoveDown(i, &r);
      r.first_block = block;
      const auto tile = [&](auto kernel) { kernel(rows, p, r, &unfinished); };
      if (rows > kBlock) {
        tile(two_blocks ? Tile<Tiles, true, true> : Tile<Tiles, true, false>);
      } else {
        tile(two_blocks ? Tile<Tiles, false, true> : Tile<Tiles, false, false>);
      }
      p.next_b += p.next_b_lines * (b.rows() / kBlock) * kBlock;
    }
  }
  unfinished.FinishRows(unfinished.rows());
}

// A's rows stay in half of a second-level cache of 2 MiB while B's columns pass by, each of them
// once.
constexpr int64_t kCachedLines = (int64_t{1} << 20) / 64;

// C [m, n] = A [m, k] of bfloat16 · B [k / 2, n] of pairs, k being zero from A's end to a multiple
// of 32.
template <class Tiles>
void AllTiles(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results) {
  constexpr int64_t kRows = 2 * kBlock;
  const int64_t whole = a.rows() / kRows * kRows;
  const int64_t cached =
      results.bfloat16
          ? std::max(kRows, kCachedLines / std::max<int64_t>(1, a.num_blocks()) / kRows * kRows)
          : kRows;
  for (int64_t i = 0; i < whole; i += cached)
    TilesOfRows<Tiles>(a, b, results, i, std::min(i + cached, whole));
  if (whole < a.rows()) TilesOfRows<Tiles>(a, b, results, whole, a.rows());
  Tiles::Release();
}

void Product(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results) {
#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX3
  if (HasTileRegisters()) return AllTiles<HardwareTiles>(a, b, results);
#endif
  AllTiles<EmulatedTiles>(a, b, results);
}

// The columns of A as a product with ones: `pairs` is A in pairs of rows.
void SumColumns(const BlockedMatrix& pairs, float* sums) {
  const Tag d;
  for (int64_t column = 0; column < pairs.columns(); column += static_cast<int64_t>(hn::Lanes(d))) {
    const float* lanes = pairs.block(column / kBlock) + column % kBlock;
    auto sum = hn::Zero(d);
    for (int64_t k0 = 0; k0 < pairs.rows(); k0 += kBlock) {
      auto even = hn::Zero(d), odd = hn::Zero(d);
      for (int64_t k = 0; k < kBlock; ++k, lanes += kBlock) {
        const auto pair = hn::Load(d, lanes);
        even = hn::Add(even, EmulatedTiles::LowHalf(pair));
        odd = hn::Add(odd, EmulatedTiles::HighHalf(pair));
      }
      sum = hn::Add(sum, hn::Add(even, odd));
    }
    StoreFirst(sum, d, sums + column, pairs.columns() - column);
  }
}

void ProductInTiles(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
                    BlockedMatrix* c) {
  const FlushDenormals flush;
  Product(a, b.lanes(), ResultsOf(options, c));
}

void SmallProductInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* c, int64_t c_row) {
  const FlushDenormals flush;
  BlockedMatrix& pairs = Scratch::OfThisThread().b;
  PairRows(b, kBlock, &pairs);
  Product(a, pairs, RowMajorResults(c_row, c));
}

void GramMatrix(const BlockedMatrix& a, float* c, int64_t c_row) {
  const FlushDenormals flush;
  BlockedMatrix& pairs = Scratch::OfThisThread().b;
  TransposeToPairs(a, &pairs);
  Product(a, pairs, RowMajorResults(c_row, c));
}

void TransposedProductInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* sums,
                              float* c) {
  const FlushDenormals flush;
  Scratch& scratch = Scratch::OfThisThread();
  PairRows(a, kBlock, &scratch.pairs);
  TransposePairs(scratch.pairs, &scratch.a);
  PairRows(b, kBlock, &scratch.b);
  Product(scratch.a, scratch.b, RowMajorResults(b.columns(), c));
  if (sums != nullptr) SumColumns(scratch.pairs, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(ProductInTiles);
HWY_EXPORT(SmallProductInTiles);
HWY_EXPORT(GramMatrix);
HWY_EXPORT(TransposedProductInTiles);

void GemmInTiles(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
                 BlockedMatrix* c) {
  HWY_DYNAMIC_DISPATCH(ProductInTiles)(a, b, options, c);
}

void SmallGemmInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* c, int64_t c_row) {
  HWY_DYNAMIC_DISPATCH(SmallProductInTiles)(a, b, c, c_row);
}

void GramMatrixInTiles(const BlockedMatrix& a, float* c, int64_t c_row) {
  HWY_DYNAMIC_DISPATCH(GramMatrix)(a, c, c_row);
}

void TransposedGemmInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c) {
  HWY_DYNAMIC_DISPATCH(TransposedProductInTiles)(a, b, sums, c);
}

}  // namespace renzan
#endif
