// Operands of bfloat16 products in the layouts that the kernels of gemm.cc and gemm_tiles.cc read.

#if defined(RENZAN_NN_GEMM_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_GEMM_OPERANDS_INL_H_
#undef RENZAN_NN_GEMM_OPERANDS_INL_H_
#else
#define RENZAN_NN_GEMM_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/base/blocked_matrix.h"
#include "renzan/base/transpose-inl.h"
#include "renzan/nn/gemm_results-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16 columns of a row.
HWY_INLINE const BFloat16Bits* LineAt(const BlockedMatrix& m, int64_t block, int64_t row) {
  return BFloat16At(m.data(), m.block_stride(), row, block);
}

// A [m, k] of bfloat16 as float32, with columns 2i and 2i + 1 swapped.
inline void WidenColumns(const BlockedMatrix& from, BlockedMatrix* to) {
  to->Reshape(from.rows(), (from.columns() + 1) / 2 * 2);
  for (int64_t block = 0; block < to->num_blocks(); ++block) {
    float* line = to->block(block);
    for (int64_t row = 0; row < from.rows(); ++row, line += kBlock) {
      const BFloat16Bits* values = LineAt(from, block, row);
      for (int64_t i = 0; i < kBlock; ++i) line[i] = FromBFloat16(values[i ^ 1]);
    }
  }
}

// A [k, m] of bfloat16 as float32, with rows 2i and 2i + 1 swapped.
inline void WidenRows(const BlockedMatrix& from, BlockedMatrix* to) {
  const int64_t rows = (from.rows() + 1) / 2 * 2;
  to->Reshape(rows, from.columns());
  const Tag d;
  for (int64_t block = 0; block < to->num_blocks(); ++block) {
    float* lines = to->block(block);
    if (rows != from.rows()) std::fill_n(lines + (rows - 2) * kBlock, kBlock, 0.0f);
    for (int64_t row = 0; row < from.rows(); ++row) {
      const BFloat16Bits* values = LineAt(from, block, row);
      for (int64_t i = 0; i < kBlock; i += static_cast<int64_t>(hn::Lanes(d)))
        hn::Store(LoadBFloat16(d, values + i), d, lines + (row ^ 1) * kBlock + i);
    }
  }
}

// A [k, m] of bfloat16 as lanes [k / 2, m] of rows 2i (low half) and 2i + 1, followed by rows of
// zeros up to a multiple.
inline void PairRows(const BlockedMatrix& from, int64_t multiple, BlockedMatrix* to) {
  const int64_t pairs = (from.rows() + 1) / 2;
  to->Reshape((pairs + multiple - 1) / multiple * multiple, from.columns());
  const hn::RebindToUnsigned<Tag> d;
  for (int64_t block = 0; block < to->num_blocks(); ++block) {
    float* line = to->block(block);
    for (int64_t row = 0; row < from.rows(); row += 2, line += kBlock) {
      const BFloat16Bits* low = LineAt(from, block, row);
      const BFloat16Bits* high = row + 1 < from.rows() ? LineAt(from, block, row + 1) : nullptr;
      for (int64_t i = 0; i < kBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
        // LoadBFloat16() moves a value into the upper half of its lane.
        auto lanes = hn::ShiftRight<16>(hn::BitCast(d, LoadBFloat16(Tag(), low + i)));
        if (high != nullptr) lanes = hn::Or(lanes, hn::BitCast(d, LoadBFloat16(Tag(), high + i)));
        hn::Store(hn::BitCast(Tag(), lanes), Tag(), line + i);
      }
    }
    std::fill_n(line, (to->rows() - pairs) * kBlock, 0.0f);
  }
}

// The transposition [m, 2k] of bfloat16 of such lanes [k, m], for k a multiple of 16.
inline void TransposePairs(const BlockedMatrix& from, BlockedMatrix* to) {
  to->Reshape(from.columns(), 2 * from.rows(), Precision::kBFloat16);
  for (int64_t block = 0; block < from.num_blocks(); ++block) {
    const int64_t rows = std::min(kBlock, from.columns() - block * kBlock);
    for (int64_t k = 0; k < from.rows(); k += kBlock) {
      const float* lanes = from.block(block) + k * kBlock;
      float* line = to->block(k / kBlock) + block * kBlock * kBlock;
      if (rows == kBlock) {
        Transpose(lanes, kBlock, kBlock, kBlock, line, kBlock);
      } else {
        HWY_ALIGN float whole[kBlock * kBlock];
        Transpose(lanes, kBlock, kBlock, kBlock, whole, kBlock);
        std::copy_n(whole, rows * kBlock, line);
      }
    }
  }
}

// The other way round, from A [m, k] to lanes [k / 2, m], followed by rows of zeros up to a
// multiple of 16.
inline void TransposeToPairs(const BlockedMatrix& from, BlockedMatrix* to) {
  to->Reshape(from.num_blocks() * kBlock, from.rows());
  for (int64_t block = 0; block < to->num_blocks(); ++block) {
    const int64_t rows = std::min(kBlock, from.rows() - block * kBlock);
    for (int64_t k = 0; k < to->rows(); k += kBlock) {
      const float* line = from.block(k / kBlock) + block * kBlock * kBlock;
      float* lanes = to->block(block) + k * kBlock;
      if (rows == kBlock) {
        Transpose(line, kBlock, kBlock, kBlock, lanes, kBlock);
      } else {
        HWY_ALIGN float whole[kBlock * kBlock] = {};
        std::copy_n(line, rows * kBlock, whole);
        Transpose(whole, kBlock, kBlock, kBlock, lanes, kBlock);
      }
    }
  }
}

// The operands of this thread's current product in another layout.
struct Scratch {
  BlockedMatrix a, b, pairs;
  static Scratch& OfThisThread() {
    thread_local Scratch scratch;
    return scratch;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
