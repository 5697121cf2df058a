#include "renzan/tensor/blocked_matrix.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/tensor/blocked_matrix.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/tensor/bfloat16-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLine = 2 * BlockedMatrix::kLanes;  // columns in a row of a block

// Calls body(the part's values in the matrix, the index of the first one in the caller's array, how
// many) for each part of n columns from `column` on; parts end where blocks do. `row` is where the
// row begins in the first block.
template <class Bits, class Body>
HWY_INLINE void ForParts(Bits* row, int64_t block_stride, int64_t column, int64_t n,
                         const Body& body) {
  for (int64_t i = 0, count; i < n; i += count) {
    const int64_t offset = (column + i) % kLine;
    count = std::min(kLine - offset, n - i);
    body(row + (column + i) / kLine * block_stride + offset, i, static_cast<size_t>(count));
  }
}

void SetBFloat16(BFloat16Bits* row, int64_t block_stride, int64_t column, const float* values,
                 int64_t n) {
  ForParts(row, block_stride, column, n,
           [=](BFloat16Bits* to, int64_t first, size_t count) HWY_ATTR {
             ForEach(count, [=](auto d, size_t i) HWY_ATTR {
               StoreBFloat16(hn::LoadU(d, values + first + static_cast<int64_t>(i)), d, to + i);
             });
           });
}

void GetBFloat16(const BFloat16Bits* row, int64_t block_stride, int64_t column, float* values,
                 int64_t n) {
  ForParts(row, block_stride, column, n,
           [=](const BFloat16Bits* from, int64_t first, size_t count) HWY_ATTR {
             ForEach(count, [=](auto d, size_t i) HWY_ATTR {
               hn::StoreU(LoadBFloat16(d, from + i), d, values + first + static_cast<int64_t>(i));
             });
           });
}

// All rows, in the order of the caller's array: faster where the values come from memory.
void SetBFloat16Columns(BFloat16Bits* matrix, int64_t rows, int64_t block_stride, int64_t column,
                        const float* values, int64_t n) {
  for (int64_t row = 0; row < rows; ++row)
    SetBFloat16(matrix + row * kLine, block_stride, column, values + row * n, n);
}

void GetBFloat16Columns(const BFloat16Bits* matrix, int64_t rows, int64_t block_stride,
                        int64_t column, float* values, int64_t n) {
  for (int64_t row = 0; row < rows; ++row)
    GetBFloat16(matrix + row * kLine, block_stride, column, values + row * n, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SetBFloat16);
HWY_EXPORT(GetBFloat16);
HWY_EXPORT(SetBFloat16Columns);
HWY_EXPORT(GetBFloat16Columns);

void BlockedMatrix::SetColumns(int64_t column, const float* values, int64_t n) {
  if (precision_ == Precision::kFloat32) {
    for (int64_t row = 0; row < rows_; ++row) SetRow(row, column, values + row * n, n);
    return;
  }
  HWY_DYNAMIC_DISPATCH(SetBFloat16Columns)
  (reinterpret_cast<BFloat16Bits*>(Line(0, 0)), rows_, 2 * block_stride(), column, values, n);
}

void BlockedMatrix::GetColumns(int64_t column, float* values, int64_t n) const {
  if (precision_ == Precision::kFloat32) {
    for (int64_t row = 0; row < rows_; ++row) GetRow(row, column, values + row * n, n);
    return;
  }
  HWY_DYNAMIC_DISPATCH(GetBFloat16Columns)
  (reinterpret_cast<const BFloat16Bits*>(Line(0, 0)), rows_, 2 * block_stride(), column, values, n);
}

void BlockedMatrix::SetBFloat16Row(int64_t row, int64_t column, const float* values, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SetBFloat16)
  (reinterpret_cast<BFloat16Bits*>(Line(0, row)), 2 * block_stride(), column, values, n);
}

void BlockedMatrix::GetBFloat16Row(int64_t row, int64_t column, float* values, int64_t n) const {
  HWY_DYNAMIC_DISPATCH(GetBFloat16)
  (reinterpret_cast<const BFloat16Bits*>(Line(0, row)), 2 * block_stride(), column, values, n);
}

}  // namespace renzan
#endif
