#include "renzan/tensor/initial_values.h"

#include <algorithm>
#include <cstddef>

#include "renzan/base/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/tensor/initial_values.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Both halves of the 64-bit products of all lanes.
template <class U, class V = hn::Vec<U>>
HWY_INLINE void MultiplyWide(U u, V a, uint32_t factor, V* high, V* low) {
  const hn::RepartitionToWide<U> u64;
  const V b = hn::Set(u, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(u, hn::ShiftRight<32>(hn::BitCast(u64, a))), b);
  *high = hn::OddEven(hn::BitCast(u, odd), hn::BitCast(u, hn::ShiftRight<32>(even)));
  *low = hn::OddEven(hn::BitCast(u, hn::ShiftLeft<32>(odd)), hn::BitCast(u, even));
}

// Philox::Draw with a counter in each lane.
template <class U, class V = hn::Vec<U>>
HWY_INLINE void DrawLanes(U u, uint64_t key, V* c0, V* c1, V* c2, V* c3) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    V high0, low0, high1, low1;
    MultiplyWide(u, *c0, 0xD2511F53u, &high0, &low0);
    MultiplyWide(u, *c2, 0xCD9E8D57u, &high1, &low1);
    *c0 = hn::Xor(hn::Xor(high1, *c1), hn::Set(u, k0));
    *c1 = low1;
    *c2 = hn::Xor(hn::Xor(high0, *c3), hn::Set(u, k1));
    *c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

template <class U, class V = hn::Vec<U>>
HWY_INLINE auto ValuesOf(U u, V words, float bound) {
  const hn::RebindToSigned<U> i;
  const hn::RebindToFloat<U> f;
  const auto uniform =
      hn::Mul(hn::ConvertTo(f, hn::BitCast(i, hn::ShiftRight<8>(words))), hn::Set(f, 0x1.0p-24f));
  (void)u;
  return hn::Mul(hn::Set(f, bound), hn::Sub(hn::Mul(hn::Set(f, 2.0f), uniform), hn::Set(f, 1.0f)));
}

// Draws whole Philox blocks, which are groups of four columns.
void DrawGroups(uint64_t key, float bound, uint64_t row, uint32_t first_group, float* out,
                size_t groups) {
  const hn::ScalableTag<uint32_t> u;
  const hn::RebindToFloat<decltype(u)> f;
  const size_t lanes = hn::Lanes(u);
  HWY_ALIGN float values[4 * hn::MaxLanes(u)];
  for (size_t done = 0; done < groups; done += lanes) {
    auto c0 = hn::Set(u, static_cast<uint32_t>(row));
    auto c1 = hn::Set(u, static_cast<uint32_t>(row >> 32));
    auto c2 = hn::Iota(u, first_group + static_cast<uint32_t>(done));
    auto c3 = hn::Zero(u);
    DrawLanes(u, key, &c0, &c1, &c2, &c3);
    const bool whole = done + lanes <= groups;
    float* const to = whole ? out + 4 * done : values;
    hn::StoreInterleaved4(ValuesOf(u, c0, bound), ValuesOf(u, c1, bound), ValuesOf(u, c2, bound),
                          ValuesOf(u, c3, bound), f, to);
    if (!whole) std::copy_n(values, 4 * (groups - done), out + 4 * done);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {
namespace {

HWY_EXPORT(DrawGroups);

void DrawOne(uint64_t key, float bound, uint64_t row, uint64_t first_column,
             std::span<float> values) {
  Philox::Block words{};
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t column = first_column + i;
    if (i == 0 || column % 4 == 0) words = Philox::Draw(key, row, column / 4);
    values[i] = bound * (2.0f * Philox::Uniform(words[column % 4]) - 1.0f);
  }
}

}  // namespace

void DrawInitialRow(uint64_t key, float bound, int64_t row, int64_t first_column,
                    std::span<float> values) {
  if (values.size() % 4 == 0 && first_column % 4 == 0) {
    HWY_DYNAMIC_DISPATCH(DrawGroups)
    (key, bound, static_cast<uint64_t>(row), static_cast<uint32_t>(first_column / 4), values.data(),
     values.size() / 4);
  } else {
    DrawOne(key, bound, static_cast<uint64_t>(row), static_cast<uint64_t>(first_column), values);
  }
}

}  // namespace renzan
#endif  // HWY_ONCE
