#include "renzan/tensor/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "renzan/base/error.h"
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

// Each lane draws one Philox block, which is a group of four columns. Lanes take the groups of row
// after row, so that short rows leave none of them idle.
void DrawRows(uint64_t key, float bound, const RowsOfColumns& of, size_t rows, float* out) {
  const hn::ScalableTag<uint32_t> u;
  const hn::RebindToFloat<decltype(u)> f;
  const size_t lanes = hn::Lanes(u);
  const size_t skipped = static_cast<size_t>(of.first_column % 4);
  const size_t columns = static_cast<size_t>(of.columns);
  const size_t groups = (skipped + columns + 3) / 4;
  const bool only_whole_groups = skipped == 0 && columns % 4 == 0;

  // Of each lane: its group within its row, and its row.
  HWY_ALIGN uint32_t group_of_lane[hn::MaxLanes(u)], row_of_lane[hn::MaxLanes(u)];
  for (size_t lane = 0, in_row = 0, row = 0; lane < lanes; ++lane) {
    group_of_lane[lane] = static_cast<uint32_t>(in_row);
    row_of_lane[lane] = static_cast<uint32_t>(row) * of.row_stride;
    if (++in_row == groups) in_row = 0, ++row;
  }
  const auto first_group = hn::Set(u, static_cast<uint32_t>(of.first_column / 4));
  const auto num_groups = hn::Set(u, static_cast<uint32_t>(groups));
  const auto next_row = hn::Set(u, of.row_stride);
  const auto step_groups = hn::Set(u, static_cast<uint32_t>(lanes % groups));
  const auto step_rows = hn::Set(u, static_cast<uint32_t>(lanes / groups) * of.row_stride);
  const auto one = hn::Set(u, 1u);
  auto group = hn::Load(u, group_of_lane);
  const auto begin = hn::Set(u, static_cast<uint32_t>(of.first_row));
  auto row_low = hn::Add(begin, hn::Load(u, row_of_lane));
  auto row_high = hn::Add(hn::Set(u, static_cast<uint32_t>(of.first_row >> 32)),
                          hn::IfThenElseZero(hn::Lt(row_low, begin), one));

  HWY_ALIGN float values[4 * hn::MaxLanes(u)];
  size_t group_of_copy = 0;
  for (size_t left = rows * groups; left > 0;) {
    auto c0 = row_low, c1 = row_high, c2 = hn::Add(first_group, group), c3 = hn::Zero(u);
    DrawLanes(u, key, &c0, &c1, &c2, &c3);
    const size_t drawn = std::min(left, lanes);
    const bool in_place = only_whole_groups && drawn == lanes;
    hn::StoreInterleaved4(ValuesOf(u, c0, bound), ValuesOf(u, c1, bound), ValuesOf(u, c2, bound),
                          ValuesOf(u, c3, bound), f, in_place ? out : values);
    if (in_place) {
      out += 4 * lanes;
    } else {
      for (size_t i = 0; i < drawn; ++i) {
        const size_t from = group_of_copy == 0 ? skipped : 0;
        const size_t to = std::min<size_t>(4, skipped + columns - 4 * group_of_copy);
        out = std::copy(values + 4 * i + from, values + 4 * i + to, out);
        if (++group_of_copy == groups) group_of_copy = 0;
      }
    }
    left -= drawn;
    group = hn::Add(group, step_groups);
    const auto is_in_next = hn::Not(hn::Lt(group, num_groups));
    group = hn::Sub(group, hn::IfThenElseZero(is_in_next, num_groups));
    const auto step = hn::Add(step_rows, hn::IfThenElseZero(is_in_next, next_row));
    row_low = hn::Add(row_low, step);
    row_high = hn::Add(row_high, hn::IfThenElseZero(hn::Lt(row_low, step), one));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(DrawRows);

namespace {

constexpr const char* kDistributionNames[] = {"uniform", "normal", "zeros"};

// Of p in (0, 1).
double Log(double p) {
  int exponent = 0;
  const double m = std::frexp(p, &exponent), s = (m - 1) / (m + 1);
  double series = 0;
  for (int k = 23; k > 0; k -= 2) series = series * (s * s) + 1.0 / k;
  return exponent * std::numbers::ln2 + 2 * s * series;
}

void DrawNormal(const InitialRows& initial, const RowsOfColumns& of, std::span<float> values) {
  for (size_t i = 0; i < values.size();) {
    const int64_t in_order = static_cast<int64_t>(i) / of.columns;
    const uint64_t row = static_cast<uint64_t>(of.first_row + in_order * of.row_stride);
    uint64_t column = static_cast<uint64_t>(of.first_column + static_cast<int64_t>(i) % of.columns);
    const uint64_t end = static_cast<uint64_t>(of.first_column + of.columns);
    const Philox::Block words = Philox::Draw(initial.key, row, column / 4);
    do {
      values[i++] = static_cast<float>(static_cast<double>(initial.bound) *
                                       NormalQuantile(words[column % 4]));
    } while (++column < end && column % 4 != 0);
  }
}

}  // namespace

const char* Name(Distribution distribution) {
  return kDistributionNames[static_cast<size_t>(distribution)];
}

Distribution ParseDistribution(const std::string& name) {
  for (const auto distribution :
       {Distribution::kUniform, Distribution::kNormal, Distribution::kZeros})
    if (name == Name(distribution)) return distribution;
  Fail(ErrorCode::kData, "'{}' is no distribution of initial values", name);
}

double NormalQuantile(uint32_t word) {
  const double p = (word + 0.5) * 0x1p-32, q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.10937472 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.1875636 * r + 78.757757664) * r + 17.895169469) * r + 1);
  }
  const double r = std::sqrt(-Log(std::min(p, 1 - p))) - 1.6;
  const double tail = (((0.17023821103 * r + 1.3067284816) * r + 2.75681539) * r + 1.4234372777) /
                      ((0.12021132975 * r + 0.7370016425) * r + 1);
  return q < 0 ? -tail : tail;
}

void DrawInitialRows(const InitialRows& initial, const RowsOfColumns& of, std::span<float> values) {
  CHECK(of.columns > 0 && of.first_column >= 0 && of.row_stride <= kMostRowStride);
  const size_t columns = static_cast<size_t>(of.columns);
  CHECK(values.size() % columns == 0);
  switch (initial.distribution) {
    case Distribution::kUniform:
      HWY_DYNAMIC_DISPATCH(DrawRows)
      (initial.key, initial.bound, of, values.size() / columns, values.data());
      return;
    case Distribution::kNormal:
      return DrawNormal(initial, of, values);
    case Distribution::kZeros:
      std::ranges::fill(values, 0.0f);
      return;
  }
}

void DrawInitialRow(const InitialRows& initial, int64_t row, int64_t first_column,
                    std::span<float> values) {
  DrawInitialRows(initial,
                  {.first_row = row, .first_column = first_column, .columns = std::ssize(values)},
                  values);
}

}  // namespace renzan
#endif  // HWY_ONCE
