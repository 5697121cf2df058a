#include "renzan/embedding/kernels.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/embedding/tree_order.h"
#include "renzan/optim/gradient_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/embedding/row_gradients-inl.h"
#include "renzan/embedding/stochastic_rounding-inl.h"
#include "renzan/optim/finite-inl.h"
#include "renzan/optim/optimizer_steps-inl.h"
#include "renzan/optim/sparse_step-inl.h"
#include "renzan/tensor/float_codec-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The rows of a table, or some of their columns.
template <FloatType kType>
struct Rows {
  using Value = std::conditional_t<kType == FloatType::kFloat32, float, uint16_t>;
  Value* data;
  int64_t dim;

  Value* At(int64_t row) const { return data + row * dim; }
  int64_t row_bytes() const { return dim * static_cast<int64_t>(sizeof(Value)); }

  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Value* p) {
    if constexpr (kType == FloatType::kFloat32) {
      return hn::LoadU(d, p);
    } else if constexpr (kType == FloatType::kFloat16) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
      // Without F16C, Highway's conversion treats infinity and NaN as finite numbers.
      return hn::BitCast(d, Half::Decode(LoadEncoded(d, p)));
#else
      // One instruction. It differs from the codec only in the bits of NaN.
      const hn::Rebind<hwy::float16_t, D> half;
      return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
#endif
    } else {
      return hn::BitCast(d, BFloat::Decode(LoadEncoded(d, p)));
    }
  }
};

template <FloatType kType>
HWY_INLINE void GatherRowsOf(Rows<kType> rows, const int32_t* ids, int64_t n, float* out) {
  const int64_t ahead = RowsAhead(rows.row_bytes());
  for (int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) Prefetch<0>(rows.At(ids[i + ahead]), rows.row_bytes());
    const auto* row = rows.At(ids[i]);
    float* to = out + i * rows.dim;
    ForEach(static_cast<size_t>(rows.dim), [&](auto tag, size_t d) HWY_ATTR {
      hn::StoreU(Rows<kType>::Load(tag, row + d), tag, to + d);
    });
  }
}

// How lookups are weighted: by nothing, or by the weight of each.
struct Unweighted {
  template <class V, class D>
  HWY_INLINE V Weigh(D, int64_t, V row) const {
    return row;
  }
  HWY_INLINE Unweighted From(int64_t) const { return {}; }
};
struct Weighted {
  const float* weights;

  template <class V, class D>
  HWY_INLINE V Weigh(D d, int64_t i, V row) const {
    return hn::Mul(hn::Set(d, weights[i]), row);
  }
  HWY_INLINE Weighted From(int64_t first) const { return {weights + first}; }
};

// Pools some columns of a bag of at least one lookup; `rows` begins at the first of these columns,
// and `weights` at the bag. Calls next(i) before it uses lookup i.
template <int kVectors, FloatType kType, class Tag, class Weights, class Next>
HWY_INLINE void PoolColumns(Tag tag, Rows<kType> rows, const int32_t* ids, int64_t n,
                            Weights weights, float* out, const Next& next) {
  const size_t lanes = hn::Lanes(tag);
  hn::Vec<Tag> sum[kVectors];
  next(0);
  const auto* row = rows.At(ids[0]);
  for (size_t v = 0; v < kVectors; ++v)
    sum[v] = weights.Weigh(tag, 0, Rows<kType>::Load(tag, row + v * lanes));
  for (int64_t i = 1; i < n; ++i) {
    next(i);
    row = rows.At(ids[i]);
    for (size_t v = 0; v < kVectors; ++v)
      sum[v] = hn::Add(sum[v], weights.Weigh(tag, i, Rows<kType>::Load(tag, row + v * lanes)));
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], tag, out + v * lanes);
}

// Pools one bag of at least one lookup.
template <FloatType kType, class Weights, class Next>
HWY_INLINE void PoolBag(Rows<kType> rows, const int32_t* ids, int64_t n, Weights weights,
                        float* out, const Next& next) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t d = 0;
  const auto pool = [&](auto vectors, auto tag) HWY_ATTR {
    // The first columns prefetch whole rows for the others.
    if (d == 0) {
      PoolColumns<vectors()>(tag, rows, ids, n, weights, out, next);
    } else {
      PoolColumns<vectors()>(tag, Rows<kType>{rows.data + d, rows.dim}, ids, n, weights, out + d,
                             [](int64_t) {});
    }
  };
  for (; d + 8 * lanes <= rows.dim; d += 8 * lanes) pool(std::integral_constant<int, 8>(), wide);
  for (; d + 4 * lanes <= rows.dim; d += 4 * lanes) pool(std::integral_constant<int, 4>(), wide);
  for (; d + lanes <= rows.dim; d += lanes) pool(std::integral_constant<int, 1>(), wide);
  for (; d < rows.dim; ++d) pool(std::integral_constant<int, 1>(), one);
}

// Prefetches the rows of the first `ahead` lookups. Returns a function that prefetches the row of
// the lookup `ahead` places after its argument.
template <FloatType kType>
HWY_INLINE auto PrefetchAhead(Rows<kType> rows, const int32_t* ids, int64_t begin, int64_t all) {
  const int64_t ahead = RowsAhead(rows.row_bytes());
  for (int64_t i = begin; i < std::min(all, begin + ahead); ++i)
    Prefetch<0>(rows.At(ids[i]), rows.row_bytes());
  return [=](int64_t at) HWY_ATTR {
    if (at + ahead < all) Prefetch<0>(rows.At(ids[at + ahead]), rows.row_bytes());
  };
}

template <FloatType kType, class Weights>
HWY_INLINE void PoolRowsOf(Rows<kType> rows, const int32_t* ids, const int32_t* offsets, int64_t n,
                           Weights weights, float* out) {
  const auto prefetch = PrefetchAhead(rows, ids, offsets[0], offsets[n]);
  for (int64_t bag = 0; bag < n; ++bag, out += rows.dim) {
    const int64_t begin = offsets[bag], length = offsets[bag + 1] - begin;
    if (length == 0) {
      std::fill_n(out, rows.dim, 0.0f);
      continue;
    }
    PoolBag(rows, ids + begin, length, weights.From(begin), out,
            [&](int64_t i) HWY_ATTR { prefetch(begin + i); });
  }
}

// `stack` [TreeOrder::kMaxDepth, dim] is scratch.
template <FloatType kType, class Weights>
HWY_INLINE void PoolRowBlocksOf(Rows<kType> rows, std::span<const int64_t> first, RowCodec wire,
                                const int32_t* ids, const int32_t* slots, const int32_t* offsets,
                                int64_t n, Weights weights, float* stack, float* out) {
  const size_t dim = static_cast<size_t>(rows.dim);
  const auto prefetch = PrefetchAhead(rows, slots, offsets[0], offsets[n]);
  const auto add = [&](size_t from, size_t to) {
    AddRoundTripRow(wire, {stack + to * dim, dim}, {stack + from * dim, dim});
  };
  TreeOrder order;
  for (int64_t bag = 0; bag < n; ++bag, out += rows.dim) {
    uint32_t block = 0;
    for (int64_t begin = offsets[bag], end; begin < offsets[bag + 1]; begin = end) {
      while (first[block + 1] <= ids[begin]) ++block;
      for (end = begin + 1; end < offsets[bag + 1] && ids[end] < first[block + 1];) ++end;
      float* leaf = stack + order.Push(block, add) * dim;
      PoolBag(rows, slots + begin, end - begin, weights.From(begin), leaf,
              [&](int64_t i) HWY_ATTR { prefetch(begin + i); });
      RoundTripRow(wire, {leaf, dim});
    }
    order.Finish(add);
    std::copy_n(stack, dim, out);
  }
}

// Calls visit(the rows as Rows<their type>).
template <class Visit>
HWY_INLINE void WithType(const RowSlots& slots, const Visit& visit) {
  using enum FloatType;
  switch (slots.type) {
    case kFloat32:
      return visit(Rows<kFloat32>{reinterpret_cast<float*>(slots.weights), slots.dim});
    case kFloat16:
      return visit(Rows<kFloat16>{reinterpret_cast<uint16_t*>(slots.weights), slots.dim});
    case kBFloat16:
      return visit(Rows<kBFloat16>{reinterpret_cast<uint16_t*>(slots.weights), slots.dim});
  }
}

void GatherRows(const RowSlots& slots, const int32_t* ids, int64_t n, float* out) {
  WithType(slots, [&](auto rows) HWY_ATTR { GatherRowsOf(rows, ids, n, out); });
}

void PoolRows(const RowSlots& slots, const int32_t* ids, const int32_t* offsets, int64_t n,
              const float* weights, float* out) {
  WithType(slots, [&](auto rows) HWY_ATTR {
    if (weights == nullptr) {
      PoolRowsOf(rows, ids, offsets, n, Unweighted{}, out);
    } else {
      PoolRowsOf(rows, ids, offsets, n, Weighted{weights}, out);
    }
  });
}

void PoolRowBlocks(const RowSlots& store, std::span<const int64_t> first, RowCodec wire,
                   const int32_t* ids, const int32_t* slots, const int32_t* offsets, int64_t n,
                   const float* weights, float* stack, float* out) {
  WithType(store, [&](auto rows) HWY_ATTR {
    if (weights == nullptr) {
      PoolRowBlocksOf(rows, first, wire, ids, slots, offsets, n, Unweighted{}, stack, out);
    } else {
      PoolRowBlocksOf(rows, first, wire, ids, slots, offsets, n, Weighted{weights}, stack, out);
    }
  });
}

// The slots of the distinct rows of RowGradients, in the order in which ForEachRow visits them.
class NextSlot {
 public:
  explicit NextSlot(const int32_t* slots) : slots_(slots) {}
  HWY_INLINE int64_t Of(int64_t row) { return slots_ == nullptr ? row : *slots_++; }

 private:
  const int32_t* slots_;
};

// The values of the row in a slot: in place, or, for 16-bit types, widened into `values` [dim].
template <FloatType kType>
HWY_INLINE float* RowValues(Rows<kType> rows, int64_t slot, float* values) {
  if constexpr (kType == FloatType::kFloat32) {
    return rows.At(slot);
  } else {
    const uint16_t* from = rows.At(slot);
    ForEach(static_cast<size_t>(rows.dim), [&](auto d, size_t i) HWY_ATTR {
      hn::StoreU(Rows<kType>::Load(d, from + i), d, values + i);
    });
    return values;
  }
}

// The gradient that the optimizer sees: g itself, or its scaled and decayed copy in `changed` [n].
HWY_INLINE const float* ScaleAndDecay(const RowStep& step, const float* w, size_t n, const float* g,
                                      float* changed) {
  if (step.gradient_scale == 1.0f && step.l2 == 0.0f) return g;
  if (g != changed) std::copy_n(g, n, changed);
  if (step.gradient_scale != 1.0f) Scale(step.gradient_scale, n, changed);
  if (step.l2 != 0.0f) AddScaled(step.l2, w, n, changed);
  return changed;
}

// `values` [dim] is scratch for one row.
template <FloatType kType>
HWY_INLINE bool UpdateRowsOf(Rows<kType> rows, const RowStep& step, const RowGradients& gradients,
                             const int32_t* slots, float* state, float* stack, float* values) {
  const int64_t dim = rows.dim;
  const int64_t state_width = StateFloatsPerRow(step.optimizer.type, dim);
  const int64_t state_bytes = state_width * static_cast<int64_t>(sizeof(float));
  const size_t width = static_cast<size_t>(dim);
  bool finite = true;
  const float* mean_square = step.mean_squares;
  const auto ahead = [&](int64_t row) HWY_ATTR {
    if (slots != nullptr) return;  // which of them is this row's is not known this far ahead
    Prefetch<1>(rows.At(row), rows.row_bytes());
    if (state_width > 0) Prefetch<1>(state + row * state_width, state_bytes);
  };
  NextSlot next(slots);
  ForEachRow(gradients, dim, stack, ahead, [&](int64_t row, const float* summed) HWY_ATTR {
    const int64_t slot = next.Of(row);
    float* w = RowValues(rows, slot, values);
    float* s = state + slot * state_width;
    const float* g = ScaleAndDecay(step, w, width, summed, stack);
    if (step.kept != 1.0f) Scale(step.kept, width, w);
    const auto mean_square_of_row = [&]() HWY_ATTR {
      return mean_square != nullptr ? *mean_square++
                                    : SumOfSquaresInChunks(g, width) / static_cast<float>(dim);
    };
    StepOfRow(step.optimizer, g, width, mean_square_of_row, s, w);
    if constexpr (kType != FloatType::kFloat32) {
      const int64_t row_of_table = step.stride * row + step.offset;
      const uint32_t word = Philox::Draw(step.rounding_key, static_cast<uint64_t>(row_of_table),
                                         static_cast<uint64_t>(step.step))[0];
      uint16_t* to = rows.At(slot);
      ForEach(width, [&](auto d, size_t i) HWY_ATTR {
        const hn::RebindToUnsigned<decltype(d)> u;
        const size_t column = static_cast<size_t>(step.first_column) + i;
        const auto rounded =
            RoundStochastically<kType>(LoadBits(d, values + i), RandomOfColumns(u, word, column));
        StoreEncoded(d, rounded, to + i);
      });
    }
    finite &= AllFinite(w, width) && AllFinite(s, static_cast<size_t>(state_width));
  });
  return finite;
}

bool UpdateRows(const RowSlots& store, const RowStep& step, const RowGradients& gradients,
                const int32_t* slots, float* stack, float* values) {
  bool finite = false;
  WithType(store, [&](auto rows) HWY_ATTR {
    finite = UpdateRowsOf(rows, step, gradients, slots, store.state, stack, values);
  });
  return finite;
}

void AddTo(int64_t n, const float* from, float* to) {
  ForEach(static_cast<size_t>(n), [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  });
}

void AddScaledTo(int64_t n, float factor, const float* from, float* to) {
  AddScaled(factor, from, static_cast<size_t>(n), to);
}

void ClearNegativeZeros(int64_t n, float* values) {
  ForEach(static_cast<size_t>(n), [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, values + i), hn::Zero(d)), d, values + i);
  });
}

size_t StepSquares(const RowSlots& store, const RowStep& step, const RowGradients& gradients,
                   const int32_t* slots, float* stack, float* values, float* squares) {
  const size_t width = static_cast<size_t>(store.dim);
  size_t n = 0;
  WithType(store, [&](auto rows) HWY_ATTR {
    const auto ahead = [&](int64_t row) HWY_ATTR {
      if (slots == nullptr) Prefetch<0>(rows.At(row), rows.row_bytes());
    };
    NextSlot next(slots);
    ForEachRow(gradients, store.dim, stack, ahead, [&](int64_t row, const float* summed) HWY_ATTR {
      const float* w = RowValues(rows, next.Of(row), values);
      squares[n++] = SumOfSquaresInChunks(ScaleAndDecay(step, w, width, summed, stack), width);
    });
  });
  return n;
}

size_t RowGradientSquares(const RowGradients& gradients, int64_t dim, float* stack,
                          double* squares) {
  size_t rows = 0;
  ForEachRow(
      gradients, dim, stack, [](int64_t) {},
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
HWY_EXPORT(PoolRowBlocks);
HWY_EXPORT(UpdateRows);
HWY_EXPORT(StepSquares);
HWY_EXPORT(AddTo);
HWY_EXPORT(AddScaledTo);
HWY_EXPORT(ClearNegativeZeros);
HWY_EXPORT(RowGradientSquares);

namespace {

// Scratch for the values of a row, and for partial sums of rows.
float* RowScratch(int64_t dim) {
  thread_local std::vector<float> scratch;
  scratch.resize(static_cast<size_t>(dim));
  return scratch.data();
}
float* StackScratch(int64_t dim) {
  thread_local std::vector<float> scratch;
  scratch.resize(TreeOrder::kMaxDepth * static_cast<size_t>(dim));
  return scratch.data();
}

}  // namespace

void GatherRows(const RowSlots& store, std::span<const int32_t> slots, float* out) {
  HWY_DYNAMIC_DISPATCH(GatherRows)
  (store, slots.data(), std::ssize(slots), out);
}

void PoolRows(const RowSlots& store, const int32_t* slots, std::span<const int32_t> offsets,
              float* out, const float* weights) {
  HWY_DYNAMIC_DISPATCH(PoolRows)
  (store, slots, offsets.data(), std::ssize(offsets) - 1, weights, out);
}

void PoolRowBlocks(const RowSlots& store, std::span<const int64_t> first, RowCodec wire,
                   const int32_t* rows, const int32_t* slots, std::span<const int32_t> offsets,
                   float* out, const float* weights) {
  HWY_DYNAMIC_DISPATCH(PoolRowBlocks)
  (store, first, wire, rows, slots, offsets.data(), std::ssize(offsets) - 1, weights,
   StackScratch(store.dim), out);
}

void AddTo(int64_t n, const float* from, float* to) { HWY_DYNAMIC_DISPATCH(AddTo)(n, from, to); }

void AddScaledTo(int64_t n, float factor, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(AddScaledTo)(n, factor, from, to);
}

void ClearNegativeZeros(int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(ClearNegativeZeros)(n, values);
}

bool UpdateRows(const RowStep& step, const RowGradients& gradients, const RowSlots& store,
                const int32_t* slots) {
  return HWY_DYNAMIC_DISPATCH(UpdateRows)(store, step, gradients, slots, StackScratch(store.dim),
                                          RowScratch(store.dim));
}

size_t StepSquares(const RowStep& step, const RowGradients& gradients, const RowSlots& store,
                   const int32_t* slots, float* squares) {
  return HWY_DYNAMIC_DISPATCH(StepSquares)(store, step, gradients, slots, StackScratch(store.dim),
                                           RowScratch(store.dim), squares);
}

size_t RowGradientSquares(const RowGradients& gradients, int64_t dim, double* squares) {
  return HWY_DYNAMIC_DISPATCH(RowGradientSquares)(gradients, dim, StackScratch(dim), squares);
}

}  // namespace renzan
#endif
