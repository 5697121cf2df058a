#include "renzan/nn/pack_pairs.h"

#include <algorithm>

#include "renzan/nn/from_avx2.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/pack_pairs.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/gemm_results-inl.h"
#include "renzan/tensor/bfloat16-inl.h"
#include "renzan/tensor/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLine = 2 * kBlock;  // bfloat16 in 16 lanes

// Up to 32 values of a row, rounded, then zeros.
HWY_INLINE void RoundLine(const float* values, int64_t n, BFloat16Bits* line) {
  const Tag d;
  for (int64_t i = 0; i < kLine; i += static_cast<int64_t>(hn::Lanes(d)))
    StoreBFloat16(LoadFirst(d, values + i, std::max<int64_t>(0, n - i)), d, line + i);
}

// Columns [column, column + 32) of up to 16 rows, from `row` on.
HWY_INLINE void Pack(const float* weight, int64_t out, int64_t in, int64_t row, int64_t column,
                     BlockedMatrix* straight, BlockedMatrix* transposed) {
  const Tag d;
  const hn::RebindToUnsigned<Tag> u;
  HWY_ALIGN BFloat16Bits lines[kBlock][kLine];
  for (int64_t i = 0; i < kBlock; ++i) {
    const int64_t columns = row + i < out ? in - column : 0;
    RoundLine(columns > 0 ? weight + (row + i) * in + column : weight, columns, lines[i]);
  }
  // Pairs of rows, padded with zeros.
  for (int64_t block = column / kBlock;
       block < std::min(column / kBlock + 2, straight->num_blocks()); ++block) {
    const int64_t pairs = std::min(kBlock / 2, straight->rows() - row / 2);
    float* lanes = straight->block(block) + row / 2 * kBlock;
    for (int64_t p = 0; p < pairs; ++p, lanes += kBlock) {
      const int64_t half = (block - column / kBlock) * kBlock;
      for (int64_t i = 0; i < kBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
        const auto low = LoadBFloat16(d, lines[2 * p] + half + i);
        const auto high = LoadBFloat16(d, lines[2 * p + 1] + half + i);
        const auto pair = hn::Or(hn::ShiftRight<16>(hn::BitCast(u, low)), hn::BitCast(u, high));
        hn::Store(hn::BitCast(d, pair), d, lanes + i);
      }
    }
  }
  // Pairs of columns.
  if (row / kBlock >= transposed->num_blocks()) return;
  const int64_t pairs = std::min(kBlock, transposed->rows() - column / 2);
  float* const to = transposed->block(row / kBlock) + column / 2 * kBlock;
  const float* const from = reinterpret_cast<const float*>(lines);
  if (pairs == kBlock) {
    Transpose(from, kBlock, kBlock, kBlock, to, kBlock);
  } else {
    HWY_ALIGN float whole[kBlock * kBlock];
    Transpose(from, kBlock, kBlock, kBlock, whole, kBlock);
    if (pairs > 0) std::copy_n(whole, pairs * kBlock, to);
  }
}

void PackRows(const float* weight, int64_t out, int64_t in, int64_t row, BlockedMatrix* straight,
              BlockedMatrix* transposed) {
  // The operands' rows are padded to different multiples.
  for (int64_t i = 0; i < kPackedRows; i += kBlock)
    for (int64_t column = 0; column < std::max(in, 2 * transposed->rows()); column += kLine)
      Pack(weight, out, in, row + i, column, straight, transposed);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(PackRows);

void PackPairs(const float* weight, int64_t row, RightOperand* straight, RightOperand* transposed) {
  HWY_DYNAMIC_DISPATCH(PackRows)
  (weight, straight->rows(), straight->columns(), row, &straight->lanes(), &transposed->lanes());
}

}  // namespace renzan
#endif
