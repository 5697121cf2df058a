#include "renzan/embedding/kernels.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "renzan/optim/gradient_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/simd_for_each-inl.h"
#include "renzan/optim/finite-inl.h"
#include "renzan/optim/optimizer_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows are prefetched so many lookups ahead that about this many cache lines are on their way:
// more than a core can request at once (16 on recent ones).
constexpr int64_t kLinesAhead = 32;
constexpr int64_t kLine = 16;  // floats

HWY_INLINE int64_t RowsAhead(int64_t dim) {
  return std::max<int64_t>(2, kLinesAhead / ((dim + kLine - 1) / kLine));
}

template <int kWrite>
HWY_INLINE void Prefetch(const float* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += kLine) __builtin_prefetch(row + d, kWrite);
}

void GatherRows(const float* weights, int64_t dim, const int32_t* ids, int64_t n, float* out) {
  const int64_t ahead = RowsAhead(dim);
  for (int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) Prefetch<0>(weights + int64_t{ids[i + ahead]} * dim, dim);
    const float* row = weights + int64_t{ids[i]} * dim;
    float* to = out + i * dim;
    ForEach(static_cast<size_t>(dim),
            [&](auto tag, size_t d) HWY_ATTR { hn::StoreU(hn::LoadU(tag, row + d), tag, to + d); });
  }
}

// Some columns of a bag of at least one lookup; `weights` begins at the first of these columns.
// Calls next(i) before it uses lookup i.
template <int kVectors, class Tag, class Next>
HWY_INLINE void PoolColumns(Tag tag, const float* weights, int64_t dim, const int32_t* ids,
                            int64_t n, float scale, float* out, const Next& next) {
  const size_t lanes = hn::Lanes(tag);
  hn::Vec<Tag> sum[kVectors];
  next(0);
  const float* row = weights + int64_t{ids[0]} * dim;
  for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(tag, row + v * lanes);
  for (int64_t i = 1; i < n; ++i) {
    next(i);
    row = weights + int64_t{ids[i]} * dim;
    for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(tag, row + v * lanes));
  }
  for (size_t v = 0; v < kVectors; ++v) {
    if (scale != 1.0f) sum[v] = hn::Mul(sum[v], hn::Set(tag, scale));
    hn::StoreU(sum[v], tag, out + v * lanes);
  }
}

// One bag of at least one lookup.
template <class Next>
HWY_INLINE void PoolBag(const float* weights, int64_t dim, const int32_t* ids, int64_t n,
                        float scale, float* out, const Next& next) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t d = 0;
  const auto pool = [&](auto vectors, auto tag) HWY_ATTR {
    // The first columns prefetch whole rows for the others.
    if (d == 0) {
      PoolColumns<vectors()>(tag, weights, dim, ids, n, scale, out, next);
    } else {
      PoolColumns<vectors()>(tag, weights + d, dim, ids, n, scale, out + d, [](int64_t) {});
    }
  };
  for (; d + 8 * lanes <= dim; d += 8 * lanes) pool(std::integral_constant<int, 8>(), wide);
  for (; d + 4 * lanes <= dim; d += 4 * lanes) pool(std::integral_constant<int, 4>(), wide);
  for (; d + lanes <= dim; d += lanes) pool(std::integral_constant<int, 1>(), wide);
  for (; d < dim; ++d) pool(std::integral_constant<int, 1>(), one);
}

void PoolRows(const float* weights, int64_t dim, const int32_t* ids, const int32_t* offsets,
              int64_t n, bool mean, float* out) {
  const int64_t ahead = RowsAhead(dim), all = offsets[n];
  for (int64_t i = offsets[0]; i < std::min(all, offsets[0] + ahead); ++i)
    Prefetch<0>(weights + int64_t{ids[i]} * dim, dim);
  for (int64_t bag = 0; bag < n; ++bag, out += dim) {
    const int64_t begin = offsets[bag], length = offsets[bag + 1] - begin;
    if (length == 0) {
      std::fill_n(out, dim, 0.0f);
      continue;
    }
    const float scale = mean && length > 1 ? 1.0f / static_cast<float>(length) : 1.0f;
    PoolBag(weights, dim, ids + begin, length, scale, out, [&](int64_t i) HWY_ATTR {
      const int64_t coming = begin + i + ahead;
      if (coming < all) Prefetch<0>(weights + int64_t{ids[coming]} * dim, dim);
    });
  }
}

// Calls visit(row, its summed gradient [dim]) for every row of `lookups`, and ahead(row) some rows
// earlier. The gradient is in `sum` [dim] or where it was.
template <class Ahead, class Visit>
HWY_INLINE void ForEachRow(const Lookup* lookups, size_t n, const float* pooled_gradients,
                           int64_t dim, float* sum, const Ahead& ahead, const Visit& visit) {
  const size_t distance = static_cast<size_t>(RowsAhead(dim));
  const auto gradient_of = [&](size_t i) {
    return pooled_gradients + int64_t{SampleOf(lookups[i])} * dim;
  };
  for (size_t i = 0; i < std::min(distance, n); ++i) ahead(int64_t{RowOf(lookups[i])});
  for (size_t begin = 0, end; begin < n; begin = end) {
    const int64_t row = RowOf(lookups[begin]);
    const float* gradient = gradient_of(begin);
    for (end = begin; end < n && RowOf(lookups[end]) == row; ++end) {
      if (end + distance < n) {
        ahead(int64_t{RowOf(lookups[end + distance])});
        Prefetch<0>(gradient_of(end + distance), dim);
      }
      if (end == begin) continue;
      const float* next = gradient_of(end);
      ForEach(static_cast<size_t>(dim), [&](auto tag, size_t d) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(tag, gradient + d), hn::LoadU(tag, next + d)), tag, sum + d);
      });
      gradient = sum;
    }
    visit(row, gradient);
  }
}

template <SparseOptimizerType kOptimizer>
HWY_INLINE bool UpdateRowsWith(const RowStep& step, const Lookup* lookups, size_t n,
                               const float* pooled_gradients, int64_t dim, float* weights,
                               float* state, float* sum) {
  using enum SparseOptimizerType;
  const int64_t state_width = kOptimizer == kAdagrad ? dim : kOptimizer == kRowWiseAdagrad ? 1 : 0;
  const size_t width = static_cast<size_t>(dim);
  const bool changes_gradient = step.gradient_scale != 1.0f || step.l2 != 0.0f;
  bool finite = true;
  const auto ahead = [&](int64_t row) HWY_ATTR {
    Prefetch<1>(weights + row * dim, dim);
    if (state_width > 0) Prefetch<1>(state + row * state_width, state_width);
  };
  ForEachRow(lookups, n, pooled_gradients, dim, sum, ahead,
             [&](int64_t row, const float* g) HWY_ATTR {
               float* w = weights + row * dim;
               float* s = state + row * state_width;
               if (changes_gradient) {
                 if (g != sum) std::copy_n(g, dim, sum);
                 g = sum;
                 if (step.gradient_scale != 1.0f) Scale(step.gradient_scale, width, sum);
                 if (step.l2 != 0.0f) AddScaled(step.l2, w, width, sum);
               }
               if (step.kept != 1.0f) Scale(step.kept, width, w);
               if (kOptimizer == kSgd) Sgd(step.lr, g, width, w);
               if (kOptimizer == kAdagrad) Adagrad(step.lr, step.epsilon, g, width, s, w);
               if (kOptimizer == kRowWiseAdagrad)
                 RowWiseAdagrad(step.lr, step.epsilon, g, width, s, w);
               finite &= AllFinite(w, width) && AllFinite(s, static_cast<size_t>(state_width));
             });
  return finite;
}

bool UpdateRows(const RowStep& step, const Lookup* lookups, size_t n, const float* pooled_gradients,
                int64_t dim, float* weights, float* state, float* sum) {
  using enum SparseOptimizerType;
  switch (step.optimizer) {
    case kSgd:
      return UpdateRowsWith<kSgd>(step, lookups, n, pooled_gradients, dim, weights, state, sum);
    case kAdagrad:
      return UpdateRowsWith<kAdagrad>(step, lookups, n, pooled_gradients, dim, weights, state, sum);
    case kRowWiseAdagrad:
      return UpdateRowsWith<kRowWiseAdagrad>(step, lookups, n, pooled_gradients, dim, weights,
                                             state, sum);
  }
  return false;
}

size_t RowGradientSquares(const Lookup* lookups, size_t n, const float* pooled_gradients,
                          int64_t dim, float* sum, double* squares) {
  size_t rows = 0;
  ForEachRow(
      lookups, n, pooled_gradients, dim, sum, [](int64_t) {},
      [&](int64_t, const float* gradient) { squares[rows++] = SumOfSquares(gradient, dim); });
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(GatherRows);
HWY_EXPORT(PoolRows);
HWY_EXPORT(UpdateRows);
HWY_EXPORT(RowGradientSquares);

namespace {

// For the gradient of one row.
float* Scratch(int64_t dim) {
  thread_local std::vector<float> scratch;
  scratch.resize(static_cast<size_t>(dim));
  return scratch.data();
}

}  // namespace

void GatherRows(const float* weights, int64_t dim, std::span<const int32_t> ids, float* out) {
  HWY_DYNAMIC_DISPATCH(GatherRows)(weights, dim, ids.data(), std::ssize(ids), out);
}

void PoolRows(const float* weights, int64_t dim, const int32_t* ids,
              std::span<const int32_t> offsets, bool mean, float* out) {
  HWY_DYNAMIC_DISPATCH(PoolRows)
  (weights, dim, ids, offsets.data(), std::ssize(offsets) - 1, mean, out);
}

bool UpdateRows(const RowStep& step, std::span<const Lookup> lookups, const float* pooled_gradients,
                int64_t dim, float* weights, float* state) {
  return HWY_DYNAMIC_DISPATCH(UpdateRows)(step, lookups.data(), lookups.size(), pooled_gradients,
                                          dim, weights, state, Scratch(dim));
}

size_t RowGradientSquares(std::span<const Lookup> lookups, const float* pooled_gradients,
                          int64_t dim, double* squares) {
  return HWY_DYNAMIC_DISPATCH(RowGradientSquares)(lookups.data(), lookups.size(), pooled_gradients,
                                                  dim, Scratch(dim), squares);
}

}  // namespace renzan
#endif
