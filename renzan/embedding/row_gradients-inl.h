// The gradients of rows, summed from those of bags in the order of RowGradients (kernels.h), and
// how far ahead rows are prefetched. Include it after <hwy/highway.h>, in a .cc file that
// foreach_target.h includes again for each target.

#if defined(RENZAN_EMBEDDING_ROW_GRADIENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_EMBEDDING_ROW_GRADIENTS_INL_H_
#undef RENZAN_EMBEDDING_ROW_GRADIENTS_INL_H_
#else
#define RENZAN_EMBEDDING_ROW_GRADIENTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "renzan/embedding/kernels.h"
#include "renzan/embedding/tree_order.h"
#include "renzan/optim/optimizer_steps-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows are prefetched far enough ahead that about this many cache lines are in flight: more than a
// core can request at once (16 on recent ones).
constexpr int64_t kLinesAhead = 32;
constexpr int64_t kLine = 64;

HWY_INLINE int64_t RowsAhead(int64_t row_bytes) {
  return std::max<int64_t>(2, kLinesAhead / ((row_bytes + kLine - 1) / kLine));
}

template <int kWrite>
HWY_INLINE void Prefetch(const void* row, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(static_cast<const std::byte*>(row) + i, kWrite);
  // GCC deletes calls of functions that do nothing but prefetch, such as lambdas that it does not
  // inline.
  asm volatile("");
}

// ForEachRow() for lookups with weights. Every gradient is multiplied into the stack.
template <class Ahead, class Visit>
HWY_INLINE void ForEachWeightedRow(const RowGradients& gradients, int64_t dim, float* stack,
                                   const Ahead& ahead, const Visit& visit) {
  const Lookup* lookups = gradients.lookups.data();
  const size_t n = gradients.lookups.size(), width = static_cast<size_t>(dim);
  const int64_t gradient_bytes = dim * static_cast<int64_t>(sizeof(float));
  const size_t distance = static_cast<size_t>(RowsAhead(gradient_bytes));
  const auto bag_of = [&](size_t i) { return gradients.bags[SampleOf(lookups[i])]; };
  const auto gradient_of = [&](size_t i) { return gradients.pooled + int64_t{bag_of(i)} * dim; };
  const auto weight_of = [&](size_t i) { return gradients.weights[SampleOf(lookups[i])]; };
  const auto add_partial_sums = [&](size_t from, size_t to) HWY_ATTR {
    float* const sum = stack + to * width;
    const float* const other = stack + from * width;
    ForEach(width, [&](auto d, size_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, other + i)), d, sum + i);
    });
  };
  for (size_t i = 0; i < std::min(distance, n); ++i) ahead(int64_t{RowOf(lookups[i])});
  TreeOrder order;
  for (size_t i = 0; i < n;) {
    const uint32_t row = RowOf(lookups[i]);
    while (i < n && RowOf(lookups[i]) == row) {
      const uint16_t virtual_worker = gradients.virtual_worker[bag_of(i)];
      // From zeros, so that no product is -0.
      float* const leaf = stack + order.Push(virtual_worker, add_partial_sums) * width;
      std::fill_n(leaf, width, 0.0f);
      for (; i < n && RowOf(lookups[i]) == row &&
             gradients.virtual_worker[bag_of(i)] == virtual_worker;
           ++i) {
        if (i + distance < n) {
          ahead(int64_t{RowOf(lookups[i + distance])});
          Prefetch<0>(gradient_of(i + distance), gradient_bytes);
        }
        AddScaled(weight_of(i), gradient_of(i), width, leaf);
      }
    }
    order.Finish(add_partial_sums);
    visit(int64_t{row}, stack);
  }
}

// Calls visit(row, its gradient [dim]) for every row of the lookups, and ahead(row) some lookups
// earlier. The gradient is in `stack` [TreeOrder::kMaxDepth, dim], or in place if it is not a sum.
template <class Ahead, class Visit>
HWY_INLINE void ForEachRow(const RowGradients& gradients, int64_t dim, float* stack,
                           const Ahead& ahead, const Visit& visit) {
  const Lookup* lookups = gradients.lookups.data();
  const size_t n = gradients.lookups.size(), width = static_cast<size_t>(dim);
  const int64_t gradient_bytes = dim * static_cast<int64_t>(sizeof(float));
  const size_t distance = static_cast<size_t>(RowsAhead(gradient_bytes));
  if (gradients.sums != nullptr) {
    // The table is small enough to stay in the caches: nothing to prefetch.
    for (size_t i = 0; i < n; ++i) {
      const int64_t row = RowOf(lookups[i]);
      if (i == 0 || row != RowOf(lookups[i - 1])) visit(row, gradients.sums + row * dim);
    }
    return;
  }
  if (gradients.weights != nullptr) return ForEachWeightedRow(gradients, dim, stack, ahead, visit);
  const auto gradient_of = [&](size_t i) {
    return gradients.pooled + int64_t{SampleOf(lookups[i])} * dim;
  };
  const auto virtual_worker_of = [&](size_t i) {
    return gradients.virtual_worker[SampleOf(lookups[i])];
  };
  // Partial sums are in the stack, or are the only gradient of a virtual worker, in place.
  const float* partial[TreeOrder::kMaxDepth];
  const auto add = [&](const float* a, const float* b, float* sum) HWY_ATTR {
    ForEach(width, [&](auto d, size_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, sum + i);
    });
  };
  const auto add_partial_sums = [&](size_t from, size_t to) HWY_ATTR {
    float* sum = stack + to * width;
    add(partial[to], partial[from], sum);
    partial[to] = sum;
  };
  for (size_t i = 0; i < std::min(distance, n); ++i) ahead(int64_t{RowOf(lookups[i])});
  const auto prefetch = [&](size_t i) HWY_ATTR {
    if (i + distance >= n) return;
    ahead(int64_t{RowOf(lookups[i + distance])});
    Prefetch<0>(gradient_of(i + distance), gradient_bytes);
  };
  TreeOrder order;
  for (size_t begin = 0, end; begin < n; begin = end) {
    const uint32_t row = RowOf(lookups[begin]);
    for (end = begin; end < n && RowOf(lookups[end]) == row; ++end) prefetch(end);
    if (end == begin + 1) {
      visit(int64_t{row}, gradient_of(begin));
      continue;
    }
    for (size_t i = begin; i < end;) {
      const uint16_t virtual_worker = virtual_worker_of(i);
      const size_t place = order.Push(virtual_worker, add_partial_sums);
      const float* sum = gradient_of(i);
      for (++i; i < end && virtual_worker_of(i) == virtual_worker; ++i) {
        add(sum, gradient_of(i), stack + place * width);
        sum = stack + place * width;
      }
      partial[place] = sum;
    }
    order.Finish(add_partial_sums);
    visit(int64_t{row}, partial[0]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
