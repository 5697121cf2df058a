#include "renzan/model/softmax_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/softmax_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/tensor/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using SoftmaxTag = hn::CappedTag<float, BlockedMatrix::kLanes>;
using SoftmaxVector = hn::Vec<SoftmaxTag>;
using GroupTag = hn::RebindToSigned<SoftmaxTag>;

// Some columns of a tile, in one vector.
class SoftmaxColumns {
 public:
  SoftmaxColumns(const SoftmaxTile& tile, int64_t column)
      : tile_(tile),
        rows_(tile.values->rows()),
        values_(tile.values->block(column / BlockedMatrix::kLanes) +
                column % BlockedMatrix::kLanes),
        groups_(hn::LoadU(GroupTag(), tile.column_groups + column)) {}

  void LogSumExp(float* most, float* sum) const {
    const SoftmaxTag d;
    auto highest = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < rows_; ++j) {
      const auto score = Score(j);
      hn::StoreU(score, d, At(j));
      highest = hn::IfThenElse(Counts(j), hn::Max(highest, score), highest);
    }
    auto all = hn::Zero(d);
    // In parts, whose sums lose less than one long sum.
    constexpr int64_t kPart = 64;
    for (int64_t first = 0; first < rows_; first += kPart) {
      auto part = hn::Zero(d);
      for (int64_t j = first; j < std::min(first + kPart, rows_); ++j)
        part = hn::Add(
            part,
            hn::IfThenElseZero(Counts(j), ExpOfNegative(d, hn::Sub(hn::LoadU(d, At(j)), highest))));
      all = hn::Add(all, part);
    }
    hn::StoreU(highest, d, most);
    hn::StoreU(all, d, sum);
  }

  void Weights(const float* logs, const float* factors) const {
    const SoftmaxTag d;
    const auto log = hn::LoadU(d, logs), factor = hn::LoadU(d, factors);
    for (int64_t j = 0; j < rows_; ++j)
      hn::StoreU(
          hn::IfThenElseZero(Counts(j), hn::Mul(factor, ExpOfNegative(d, hn::Sub(Score(j), log)))),
          d, At(j));
  }

 private:
  float* At(int64_t row) const { return values_ + row * BlockedMatrix::kLanes; }
  HWY_INLINE SoftmaxVector Score(int64_t row) const {
    const SoftmaxTag d;
    const auto scaled = hn::Mul(hn::LoadU(d, At(row)), hn::Set(d, tile_.scale));
    return tile_.offsets == nullptr ? scaled : hn::Sub(scaled, hn::Set(d, tile_.offsets[row]));
  }
  HWY_INLINE hn::Mask<SoftmaxTag> Counts(int64_t row) const {
    const int32_t group =
        tile_.row_groups == nullptr ? static_cast<int32_t>(row) : tile_.row_groups[row];
    return hn::RebindMask(SoftmaxTag(), hn::Ne(groups_, hn::Set(GroupTag(), group)));
  }

  const SoftmaxTile& tile_;
  int64_t rows_;
  float* values_;
  hn::Vec<GroupTag> groups_;
};

template <class Body>
HWY_INLINE void ForEachColumns(const Body& body) {
  for (int64_t c = 0; c < SoftmaxTile::kColumns; c += static_cast<int64_t>(hn::Lanes(SoftmaxTag())))
    body(c);
}

void SoftmaxLogSumExp(const SoftmaxTile& tile, float* most, float* sums) {
  ForEachColumns([&](int64_t c) { SoftmaxColumns(tile, c).LogSumExp(most + c, sums + c); });
}

void SoftmaxWeights(const SoftmaxTile& tile, const float* logs, const float* factors) {
  ForEachColumns([&](int64_t c) { SoftmaxColumns(tile, c).Weights(logs + c, factors + c); });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SoftmaxLogSumExp);
HWY_EXPORT(SoftmaxWeights);

void SoftmaxTile::LogSumExp(float* logs) const {
  float sums[kColumns];
  HWY_DYNAMIC_DISPATCH(SoftmaxLogSumExp)(*this, logs, sums);
  for (int64_t c = 0; c < kColumns; ++c)
    logs[c] = static_cast<float>(double{logs[c]} + std::log(double{sums[c]}));
}

void SoftmaxTile::Weights(const float* logs, const float* factors) const {
  HWY_DYNAMIC_DISPATCH(SoftmaxWeights)(*this, logs, factors);
}

}  // namespace renzan
#endif
