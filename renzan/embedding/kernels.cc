#include "renzan/embedding/kernels.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/optim/gradient_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/float_codec-inl.h"
#include "renzan/base/simd_for_each-inl.h"
#include "renzan/embedding/stochastic_rounding-inl.h"
#include "renzan/optim/finite-inl.h"
#include "renzan/optim/optimizer_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows are prefetched so many lookups ahead that about this many cache lines are on their way:
// more than a core can request at once (16 on recent ones).
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
      // Without F16C, Highway's conversion takes infinity and NaN for numbers.
      return hn::BitCast(d, Half::Decode(LoadEncoded(d, p)));
#else
      // One instruction. It differs from the codec in the bits of NaN only.
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

// Some columns of a bag of at least one lookup; `rows` begins at the first of these columns.
// Calls next(i) before it uses lookup i.
template <int kVectors, FloatType kType, class Tag, class Next>
HWY_INLINE void PoolColumns(Tag tag, Rows<kType> rows, const int32_t* ids, int64_t n, float scale,
                            float* out, const Next& next) {
  const size_t lanes = hn::Lanes(tag);
  hn::Vec<Tag> sum[kVectors];
  next(0);
  const auto* row = rows.At(ids[0]);
  for (size_t v = 0; v < kVectors; ++v) sum[v] = Rows<kType>::Load(tag, row + v * lanes);
  for (int64_t i = 1; i < n; ++i) {
    next(i);
    row = rows.At(ids[i]);
    for (size_t v = 0; v < kVectors; ++v)
      sum[v] = hn::Add(sum[v], Rows<kType>::Load(tag, row + v * lanes));
  }
  for (size_t v = 0; v < kVectors; ++v) {
    if (scale != 1.0f) sum[v] = hn::Mul(sum[v], hn::Set(tag, scale));
    hn::StoreU(sum[v], tag, out + v * lanes);
  }
}

// One bag of at least one lookup.
template <FloatType kType, class Next>
HWY_INLINE void PoolBag(Rows<kType> rows, const int32_t* ids, int64_t n, float scale, float* out,
                        const Next& next) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t d = 0;
  const auto pool = [&](auto vectors, auto tag) HWY_ATTR {
    // The first columns prefetch whole rows for the others.
    if (d == 0) {
      PoolColumns<vectors()>(tag, rows, ids, n, scale, out, next);
    } else {
      PoolColumns<vectors()>(tag, Rows<kType>{rows.data + d, rows.dim}, ids, n, scale, out + d,
                             [](int64_t) {});
    }
  };
  for (; d + 8 * lanes <= rows.dim; d += 8 * lanes) pool(std::integral_constant<int, 8>(), wide);
  for (; d + 4 * lanes <= rows.dim; d += 4 * lanes) pool(std::integral_constant<int, 4>(), wide);
  for (; d + lanes <= rows.dim; d += lanes) pool(std::integral_constant<int, 1>(), wide);
  for (; d < rows.dim; ++d) pool(std::integral_constant<int, 1>(), one);
}

template <FloatType kType>
HWY_INLINE void PoolRowsOf(Rows<kType> rows, const int32_t* ids, const int32_t* offsets, int64_t n,
                           bool mean, float* out) {
  const int64_t ahead = RowsAhead(rows.row_bytes()), all = offsets[n];
  for (int64_t i = offsets[0]; i < std::min(all, offsets[0] + ahead); ++i)
    Prefetch<0>(rows.At(ids[i]), rows.row_bytes());
  for (int64_t bag = 0; bag < n; ++bag, out += rows.dim) {
    const int64_t begin = offsets[bag], length = offsets[bag + 1] - begin;
    if (length == 0) {
      std::fill_n(out, rows.dim, 0.0f);
      continue;
    }
    const float scale = mean && length > 1 ? 1.0f / static_cast<float>(length) : 1.0f;
    PoolBag(rows, ids + begin, length, scale, out, [&](int64_t i) HWY_ATTR {
      const int64_t coming = begin + i + ahead;
      if (coming < all) Prefetch<0>(rows.At(ids[coming]), rows.row_bytes());
    });
  }
}

// Calls visit(the rows as Rows<their type>).
template <class Visit>
HWY_INLINE void WithType(FloatType type, std::byte* data, int64_t dim, const Visit& visit) {
  using enum FloatType;
  switch (type) {
    case kFloat32:
      return visit(Rows<kFloat32>{reinterpret_cast<float*>(data), dim});
    case kFloat16:
      return visit(Rows<kFloat16>{reinterpret_cast<uint16_t*>(data), dim});
    case kBFloat16:
      return visit(Rows<kBFloat16>{reinterpret_cast<uint16_t*>(data), dim});
  }
}

void GatherRows(FloatType type, std::byte* data, int64_t dim, const int32_t* ids, int64_t n,
                float* out) {
  WithType(type, data, dim, [&](auto rows) HWY_ATTR { GatherRowsOf(rows, ids, n, out); });
}

void PoolRows(FloatType type, std::byte* data, int64_t dim, const int32_t* ids,
              const int32_t* offsets, int64_t n, bool mean, float* out) {
  WithType(type, data, dim,
           [&](auto rows) HWY_ATTR { PoolRowsOf(rows, ids, offsets, n, mean, out); });
}

// Calls visit(row, its summed gradient [dim]) for every row of `lookups`, and ahead(row) some rows
// earlier. The gradient is in `sum` [dim] or where it was.
template <class Ahead, class Visit>
HWY_INLINE void ForEachRow(const Lookup* lookups, size_t n, const float* pooled_gradients,
                           int64_t dim, float* sum, const Ahead& ahead, const Visit& visit) {
  const int64_t gradient_bytes = dim * static_cast<int64_t>(sizeof(float));
  const size_t distance = static_cast<size_t>(RowsAhead(gradient_bytes));
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
        Prefetch<0>(gradient_of(end + distance), gradient_bytes);
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

// `sum` and `values` [dim] are for a gradient and a row.
template <FloatType kType>
HWY_INLINE bool UpdateRowsOf(Rows<kType> rows, const RowStep& step, const Lookup* lookups, size_t n,
                             const float* pooled_gradients, float* state, float* sum,
                             float* values) {
  using enum SparseOptimizerType;
  const int64_t dim = rows.dim;
  const int64_t state_width = StateFloatsPerRow(step.optimizer, dim);
  const int64_t state_bytes = state_width * static_cast<int64_t>(sizeof(float));
  const size_t width = static_cast<size_t>(dim);
  const bool changes_gradient = step.gradient_scale != 1.0f || step.l2 != 0.0f;
  bool finite = true;
  const auto ahead = [&](int64_t row) HWY_ATTR {
    Prefetch<1>(rows.At(row), rows.row_bytes());
    if (state_width > 0) Prefetch<1>(state + row * state_width, state_bytes);
  };
  ForEachRow(
      lookups, n, pooled_gradients, dim, sum, ahead, [&](int64_t row, const float* g) HWY_ATTR {
        float* w;
        if constexpr (kType == FloatType::kFloat32) {
          w = rows.At(row);
        } else {
          const uint16_t* from = rows.At(row);
          ForEach(width, [&](auto d, size_t i) HWY_ATTR {
            hn::StoreU(Rows<kType>::Load(d, from + i), d, values + i);
          });
          w = values;
        }
        float* s = state + row * state_width;
        if (changes_gradient) {
          if (g != sum) std::copy_n(g, dim, sum);
          g = sum;
          if (step.gradient_scale != 1.0f) Scale(step.gradient_scale, width, sum);
          if (step.l2 != 0.0f) AddScaled(step.l2, w, width, sum);
        }
        if (step.kept != 1.0f) Scale(step.kept, width, w);
        switch (step.optimizer) {
          case kSgd:
            Sgd(step.lr, g, width, w);
            break;
          case kAdagrad:
            Adagrad(step.lr, step.epsilon, g, width, s, w);
            break;
          case kRowWiseAdagrad:
            RowWiseAdagrad(step.lr, step.epsilon, g, width, s, w);
            break;
        }
        if constexpr (kType != FloatType::kFloat32) {
          const uint32_t word = Philox::Draw(step.rounding_key, static_cast<uint64_t>(row),
                                             static_cast<uint64_t>(step.step))[0];
          uint16_t* to = rows.At(row);
          ForEach(width, [&](auto d, size_t i) HWY_ATTR {
            const hn::RebindToUnsigned<decltype(d)> u;
            const auto rounded =
                RoundStochastically<kType>(LoadBits(d, values + i), RandomOfColumns(u, word, i));
            StoreEncoded(d, rounded, to + i);
          });
        }
        finite &= AllFinite(w, width) && AllFinite(s, static_cast<size_t>(state_width));
      });
  return finite;
}

bool UpdateRows(FloatType type, std::byte* data, int64_t dim, const RowStep& step,
                const Lookup* lookups, size_t n, const float* pooled_gradients, float* state,
                float* sum, float* values) {
  bool finite = false;
  WithType(type, data, dim, [&](auto rows) HWY_ATTR {
    finite = UpdateRowsOf(rows, step, lookups, n, pooled_gradients, state, sum, values);
  });
  return finite;
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

// For one row: a gradient, or values.
template <int kPurpose>
float* Scratch(int64_t dim) {
  thread_local std::vector<float> scratch;
  scratch.resize(static_cast<size_t>(dim));
  return scratch.data();
}

// Kernels that only read get it without const, like the others.
std::byte* DataOf(const RowStorage& rows) { return const_cast<std::byte*>(rows.bytes().data()); }

}  // namespace

void GatherRows(const RowStorage& rows, std::span<const int32_t> ids, float* out) {
  HWY_DYNAMIC_DISPATCH(GatherRows)
  (rows.type(), DataOf(rows), rows.dim(), ids.data(), std::ssize(ids), out);
}

void PoolRows(const RowStorage& rows, const int32_t* ids, std::span<const int32_t> offsets,
              bool mean, float* out) {
  HWY_DYNAMIC_DISPATCH(PoolRows)
  (rows.type(), DataOf(rows), rows.dim(), ids, offsets.data(), std::ssize(offsets) - 1, mean, out);
}

bool UpdateRows(const RowStep& step, std::span<const Lookup> lookups, const float* pooled_gradients,
                RowStorage* rows, float* state) {
  const int64_t dim = rows->dim();
  return HWY_DYNAMIC_DISPATCH(UpdateRows)(rows->type(), rows->bytes().data(), dim, step,
                                          lookups.data(), lookups.size(), pooled_gradients, state,
                                          Scratch<0>(dim), Scratch<1>(dim));
}

size_t RowGradientSquares(std::span<const Lookup> lookups, const float* pooled_gradients,
                          int64_t dim, double* squares) {
  return HWY_DYNAMIC_DISPATCH(RowGradientSquares)(lookups.data(), lookups.size(), pooled_gradients,
                                                  dim, Scratch<0>(dim), squares);
}

}  // namespace renzan
#endif
