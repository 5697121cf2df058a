// Operands of bfloat16 products in the layouts that the kernels of gemm.cc and gemm_tiles.cc read.

#if defined(RENZAN_NN_GEMM_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_GEMM_OPERANDS_INL_H_
#undef RENZAN_NN_GEMM_OPERANDS_INL_H_
#else
#define RENZAN_NN_GEMM_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/nn/gemm_results-inl.h"
#include "renzan/tensor/blocked_matrix.h"
#include "renzan/tensor/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16 columns of bfloat16 in a row.
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

// The bfloat16 in the low or the high half of each lane, as float32.
HWY_INLINE hn::Vec<Tag> LowHalf(hn::Vec<Tag> lanes) {
  const hn::RebindToUnsigned<Tag> u;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::BitCast(u, lanes)));
}
HWY_INLINE hn::Vec<Tag> HighHalf(hn::Vec<Tag> lanes) {
  const hn::RebindToUnsigned<Tag> u;
  return hn::BitCast(Tag(), hn::And(hn::BitCast(u, lanes), hn::Set(u, 0xFFFF0000u)));
}

// The bfloat16 of two lines as 32 lanes, the first line's in the low halves. Interleaving works
// within 128 bits: the first 16 lanes are columns 0 to 3, 8 to 11, 16 to 19 and 24 to 27, the other
// 16 those between them.
HWY_INLINE void InterleaveLines(const float* low, const float* high, float* lanes) {
  const Tag d;
  const hn::Repartition<uint16_t, Tag> halves;
  for (int64_t i = 0; i < kBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto x = hn::BitCast(halves, hn::Load(d, low + i));
    const auto y = hn::BitCast(halves, hn::Load(d, high + i));
    hn::Store(hn::BitCast(d, hn::InterleaveLower(halves, x, y)), d, lanes + i);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(halves, x, y)), d, lanes + kBlock + i);
  }
}

// The transposition [m, k] of A [k, m] of bfloat16, with zeros up to a multiple of 32 in k. Unless
// `sums` [m] is null, it gets the sums of A's columns: products with ones, in AMX's order (gemm.h).
inline void TransposeRows(const BlockedMatrix& from, BlockedMatrix* to, float* sums) {
  constexpr int64_t kLine = 2 * kBlock;  // bfloat16
  constexpr int kVectors = 2 * kParts;   // of 32 lanes
  const int64_t k = from.rows();
  to->Reshape(from.columns(), (k + kLine - 1) / kLine * kLine, Precision::kBFloat16);
  const Tag d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float zeros[kBlock] = {}, lanes[kBlock * kLine], whole[kLine * kBlock];
  for (int64_t block = 0; block < from.num_blocks(); ++block) {
    const int64_t columns = std::min(kLine, from.columns() - block * kLine);
    hn::Vec<Tag> sum[kVectors];
    for (auto& each : sum) each = hn::Zero(d);
    for (int64_t k0 = 0; k0 < k; k0 += kLine) {
      const float* line = from.block(block) + k0 * kBlock;
      hn::Vec<Tag> even[kVectors], odd[kVectors];
      for (int i = 0; i < kVectors; ++i) even[i] = odd[i] = hn::Zero(d);
      for (int64_t pair = 0; pair < kBlock; ++pair, line += 2 * kBlock) {
        float* const to_lanes = lanes + pair * kLine;
        InterleaveLines(k0 + 2 * pair < k ? line : zeros,
                        k0 + 2 * pair + 1 < k ? line + kBlock : zeros, to_lanes);
        for (int i = 0; i < kVectors; ++i) {
          const auto both = hn::Load(d, to_lanes + i * n);
          even[i] = hn::Add(even[i], LowHalf(both));
          odd[i] = hn::Add(odd[i], HighHalf(both));
        }
      }
      for (int i = 0; i < kVectors; ++i) sum[i] = hn::Add(sum[i], hn::Add(even[i], odd[i]));
      float* const end = to->block(k0 / kLine) + block * kLine * kBlock;
      float* const rows = columns == kLine ? end : whole;
      for (int64_t half = 0; half < 2; ++half)
        Transpose(lanes + half * kBlock, kLine, kBlock, kBlock, rows + 4 * half * kBlock, kBlock,
                  8 * kBlock);
      if (rows == whole) std::copy_n(whole, columns * kBlock, end);
    }
    if (sums == nullptr) continue;
    HWY_ALIGN float all[kLine];
    for (int i = 0; i < kVectors; ++i) hn::Store(sum[i], d, all + i * n);
    for (int64_t c = 0; c < columns; ++c)
      sums[block * kLine + c] = all[c / 4 % 2 * kBlock + c / 8 * 4 + c % 4];
  }
}

// The transposition of A [m, k] of bfloat16 as lanes [k / 2, m] of such pairs, followed by rows of
// zeros up to a multiple of 16.
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

// This thread's buffers for the operands of its current product in another layout.
struct Scratch {
  BlockedMatrix a, b;
  static Scratch& OfThisThread() {
    thread_local Scratch scratch;
    return scratch;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
