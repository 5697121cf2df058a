#include "renzan/model/pair_products.h"

#include <algorithm>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/pair_products.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/model/rows_in_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using V = hn::Vec<RowLanes>;

// Columns in whole blocks, of either precision.
constexpr int64_t Whole(int64_t columns) {
  constexpr int64_t kBlock = 2 * BlockedMatrix::kLanes;
  return (columns + kBlock - 1) / kBlock * kBlock;
}

void Products(const BlockedMatrix& x, const BlockedMatrix& y, int64_t first, float* scratch,
              BlockedMatrix* pairs) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = y.columns();
  float *const x_row = scratch, *const y_row = x_row + Whole(x.columns());
  float* const products = y_row + Whole(width);
  for (int64_t row = 0; row < pairs->rows(); ++row) {
    x.GetRow(first + row, 0, x_row, x.columns());
    y.GetRow(first + row, 0, y_row, width);
    // What a last vector writes beyond its row, the next row overwrites.
    for (int64_t i = 0; i < x.columns(); ++i) {
      const V factor = hn::Set(d, x_row[i]);
      for (int64_t j = 0; j < width; j += lanes)
        hn::StoreU(hn::Mul(factor, hn::LoadU(d, y_row + j)), d, products + i * width + j);
    }
    pairs->SetRow(row, 0, products, pairs->columns());
  }
}

// For kCount values of x from i on, and as many rows as a vector has lanes: value v of row r is at
// [v · lanes + r].
template <int kCount>
HWY_INLINE void Backward(const float* d_pairs, const float* x, const float* y, int64_t width,
                         float* d_x, float* d_y) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V factor[kCount], sum[kCount];
  for (int i = 0; i < kCount; ++i) {
    factor[i] = hn::LoadU(d, x + i * lanes);
    sum[i] = hn::LoadU(d, d_x + i * lanes);
  }
  for (int64_t j = 0; j < width; ++j) {
    const V other = hn::LoadU(d, y + j * lanes);
    V d_other = hn::LoadU(d, d_y + j * lanes);
    for (int i = 0; i < kCount; ++i) {
      const V gradient = hn::LoadU(d, d_pairs + (i * width + j) * lanes);
      sum[i] = hn::Add(sum[i], hn::Mul(gradient, other));
      d_other = hn::Add(d_other, hn::Mul(gradient, factor[i]));
    }
    hn::StoreU(d_other, d, d_y + j * lanes);
  }
  for (int i = 0; i < kCount; ++i) hn::StoreU(sum[i], d, d_x + i * lanes);
}

void ProductsBackward(const BlockedMatrix& d_pairs, const BlockedMatrix& x, const BlockedMatrix& y,
                      int64_t first, float* scratch, BlockedMatrix* d_x, BlockedMatrix* d_y) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t x_columns = x.columns(), width = y.columns();
  float *const x_values = scratch, *const y_values = x_values + Whole(x_columns) * lanes;
  float* const d_x_values = y_values + Whole(width) * lanes;
  float* const d_y_values = d_x_values + Whole(x_columns) * lanes;
  float* const d_pair_values = d_y_values + Whole(width) * lanes;
  for (int64_t row = 0; row < d_pairs.rows(); row += lanes) {
    ReadRows(x, first + row, x_values);
    ReadRows(y, first + row, y_values);
    ReadRows(d_pairs, row, d_pair_values);
    ReadRows(*d_y, first + row, d_y_values);
    if (d_x != nullptr) {
      ReadRows(*d_x, row, d_x_values);
    } else {
      std::fill_n(d_x_values, x_columns * lanes, 0.0f);
    }
    // Two at a time, because one would wait for its sum.
    int64_t i = 0;
    for (; i + 2 <= x_columns; i += 2)
      Backward<2>(d_pair_values + i * width * lanes, x_values + i * lanes, y_values, width,
                  d_x_values + i * lanes, d_y_values);
    if (i < x_columns)
      Backward<1>(d_pair_values + i * width * lanes, x_values + i * lanes, y_values, width,
                  d_x_values + i * lanes, d_y_values);
    if (d_x != nullptr) {
      WriteRows(d_x_values, row, d_x);
    } else {
      for (int64_t at = 0; at < width * lanes; at += lanes)
        hn::StoreU(hn::Add(hn::LoadU(d, d_y_values + at), hn::LoadU(d, d_x_values + at)), d,
                   d_y_values + at);
    }
    WriteRows(d_y_values, first + row, d_y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Products);
HWY_EXPORT(ProductsBackward);

int64_t PairScratch(int64_t x_columns, int64_t y_columns) {
  constexpr int64_t kBlock = 2 * BlockedMatrix::kLanes;
  const auto whole = [](int64_t columns) { return (columns + kBlock - 1) / kBlock * kBlock; };
  return BlockedMatrix::kLanes *
         (2 * whole(x_columns) + 2 * whole(y_columns) + whole(x_columns * y_columns));
}

void PairProducts(const BlockedMatrix& x, const BlockedMatrix& y, int64_t first, float* scratch,
                  BlockedMatrix* pairs) {
  CHECK(pairs->columns() == x.columns() * y.columns() && first + pairs->rows() <= y.rows());
  HWY_DYNAMIC_DISPATCH(Products)(x, y, first, scratch, pairs);
}

void PairProductsBackward(const BlockedMatrix& d_pairs, const BlockedMatrix& x,
                          const BlockedMatrix& y, int64_t first, float* scratch, BlockedMatrix* d_x,
                          BlockedMatrix* d_y) {
  constexpr int64_t kMost = BlockedMatrix::kLanes;
  CHECK(first % kMost == 0 &&
        (d_pairs.rows() % kMost == 0 || first + d_pairs.rows() == d_y->rows()));
  CHECK(d_x == nullptr ? &x == &y : d_x->rows() == d_pairs.rows());
  HWY_DYNAMIC_DISPATCH(ProductsBackward)(d_pairs, x, y, first, scratch, d_x, d_y);
}

}  // namespace renzan
#endif
