#include "renzan/nn/gemm_tiles.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/from_avx2.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/gemm_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/gemm_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows [begin, end) of C, whose tiles all have the same shape.
template <class Tiles>
void TilesOfRows(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results,
                 int64_t begin, int64_t end) {
  const int64_t rows = std::min(2 * kBlock, end - begin);
  const int64_t steps = std::max<int64_t>(1, (end - begin) / rows * (b.rows() / kBlock));
  Tiles::Configure(ShapeFor(rows));
  Unfinished unfinished;
  for (int64_t block = 0; block < b.num_blocks(); block += 2) {
    // Meanwhile the next blocks are prefetched.
    const int64_t next = std::clamp<int64_t>(b.num_blocks() - block - 2, 0, 2);
    const int64_t lines = (next * b.block_stride() / kBlock + steps - 1) / steps;
    Operands p{.k = b.rows(),
               .a_block = a.block_stride(),
               .b = b.block(block),
               .b_block = b.block_stride(),
               .next = b.block(next > 0 ? block + 2 : block),
               .next_lines = lines,
               .next_step = lines * kBlock};
    for (int64_t i = begin; i < end; i += rows) {
      p.a = a.block(0) + i * kBlock;
      Results r = results;
      MoveDown(i, &r);
      r.first_block = block;
      AnyTile<Tiles>(rows, block + 1 < b.num_blocks(), p, r, &unfinished);
      p.next += p.next_step * (b.rows() / kBlock);
    }
  }
  unfinished.FinishRows(unfinished.rows());
}

// A's rows stay in half of a second-level cache of 2 MiB while each of B's columns is read once.
constexpr int64_t kCachedLines = (int64_t{1} << 20) / 64;

// C [m, n] = A [m, k] · B [k / 2, n], for A of bfloat16 and B of pairs. k is padded with zeros to a
// multiple of 32.
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
  TransposeRows(a, &scratch.a, sums);
  PairRows(b, kBlock, &scratch.b);
  Product(scratch.a, scratch.b, RowMajorResults(b.columns(), c));
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
