// Rows of a blocked matrix side by side, one in each lane of a vector, so that kernels that do the
// same for every sample need neither sums across lanes nor padding. Include it after
// <hwy/highway.h>, in a .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_MODEL_ROWS_IN_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_MODEL_ROWS_IN_LANES_INL_H_
#undef RENZAN_MODEL_ROWS_IN_LANES_INL_H_
#else
#define RENZAN_MODEL_ROWS_IN_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/tensor/bfloat16-inl.h"
#include "renzan/tensor/blocked_matrix.h"
#include "renzan/tensor/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowLanes = hn::CappedTag<float, BlockedMatrix::kLanes>;

// The lines of the rows in one block: in the matrix, or in a copy where the matrix ends before the
// last lane.
class Lines {
 public:
  static constexpr int64_t kLine = BlockedMatrix::kLanes;

  Lines(int64_t row, const BlockedMatrix& matrix)
      : first_(row * kLine), lanes_(static_cast<int64_t>(hn::Lanes(RowLanes()))) {
    rows_ = std::min(lanes_, matrix.rows() - row);
  }

  const float* Read(const BlockedMatrix& matrix, int64_t block) {
    const float* lines = matrix.block(block) + first_;
    Prefetch(lines);
    if (rows_ == lanes_) return lines;
    std::copy_n(lines, rows_ * kLine, copy_);
    return copy_;
  }
  // Where to put the lines before Write().
  float* ToWrite(BlockedMatrix* matrix, int64_t block) {
    float* lines = matrix->block(block) + first_;
    Prefetch(lines);
    return rows_ == lanes_ ? lines : copy_;
  }
  void Write(BlockedMatrix* matrix, int64_t block) const {
    if (rows_ < lanes_) std::copy_n(copy_, rows_ * kLine, matrix->block(block) + first_);
  }

 private:
  // Blocks are too far apart for the hardware prefetcher.
  HWY_INLINE void Prefetch(const float* lines) const {
    for (int64_t r = lanes_; r < 2 * lanes_; ++r) __builtin_prefetch(lines + r * kLine, 0, 2);
  }

  int64_t first_, lanes_, rows_;
  alignas(64) float copy_[kLine * kLine] = {};
};

// Reads whole blocks of columns: to[c·lanes + i] is column c of row `row` + i, as float32. Lanes
// beyond the last row are zero.
inline HWY_NOINLINE void ReadRows(const BlockedMatrix& matrix, int64_t row, float* to) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), line = Lines::kLine;
  Lines lines(row, matrix);
  if (matrix.precision() == Precision::kFloat32) {
    for (int64_t b = 0; b < matrix.num_blocks(); ++b, to += line * lanes)
      Transpose(lines.Read(matrix, b), line, lanes, line, to, lanes);
    return;
  }
  const hn::RebindToUnsigned<RowLanes> u;
  alignas(64) float pairs[Lines::kLine * Lines::kLine];
  for (int64_t b = 0; b < matrix.num_blocks(); ++b) {
    Transpose(lines.Read(matrix, b), line, lanes, line, pairs, lanes);
    for (int64_t l = 0; l < line; ++l, to += 2 * lanes) {
      const auto pair = hn::BitCast(u, hn::LoadU(d, pairs + l * lanes));
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(pair)), d, to);
      hn::StoreU(hn::BitCast(d, hn::And(pair, hn::Set(u, 0xFFFF0000u))), d, to + lanes);
    }
  }
}

// The reverse, rounding if the matrix stores bfloat16. Columns beyond the matrix's last one must be
// zero.
inline HWY_NOINLINE void WriteRows(const float* from, int64_t row, BlockedMatrix* matrix) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), line = Lines::kLine;
  Lines lines(row, *matrix);
  const hn::RebindToUnsigned<RowLanes> u;
  alignas(64) float pairs[Lines::kLine * Lines::kLine];
  for (int64_t b = 0; b < matrix->num_blocks(); ++b) {
    const float* block = from;
    if (matrix->precision() == Precision::kFloat32) {
      from += line * lanes;
    } else {
      for (int64_t l = 0; l < line; ++l, from += 2 * lanes) {
        const auto low = hn::ShiftRight<16>(RoundToUpperHalf(d, hn::LoadU(d, from)));
        const auto high = RoundToUpperHalf(d, hn::LoadU(d, from + lanes));
        const auto pair = hn::Or(low, hn::And(high, hn::Set(u, 0xFFFF0000u)));
        hn::StoreU(hn::BitCast(d, pair), d, pairs + l * lanes);
      }
      block = pairs;
    }
    Transpose(block, lanes, line, lanes, lines.ToWrite(matrix, b), line);
    lines.Write(matrix, b);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
