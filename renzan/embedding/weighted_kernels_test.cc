// Lookups with weights: pooled rows and the gradients of rows at all widths of the kernels, against
// the formulas in double precision.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/memory_row_store.h"
#include "renzan/embedding/testing.h"

namespace renzan {
namespace {

constexpr size_t kNumRows = 10;

// Bags of a few lengths, also empty, and one longer than rows are prefetched.
struct WeightedBatch {
  std::vector<int32_t> offsets = {0, 0, 1, 5, 5, 12, 62, 62}, rows;
  std::vector<float> weights;

  WeightedBatch() {
    weights = RandomValues(static_cast<size_t>(offsets.back()), 7);
    weights[3] = 0;
    for (int32_t i = 0; i < offsets.back(); ++i)
      rows.push_back(i * i * 7 % static_cast<int32_t>(kNumRows));
  }
  size_t bags() const { return offsets.size() - 1; }
};

class WeightedKernels : public ::testing::TestWithParam<int64_t> {
 protected:
  const size_t dim_ = static_cast<size_t>(GetParam());
  const WeightedBatch batch_;

  MemoryRowStore NewStore(FloatType type) const {
    MemoryRowStore store({.layout = {type, GetParam(), 0}, .rows = kNumRows});
    store.SetWeights(0, RandomValues(kNumRows * dim_, 1));
    return store;
  }
};

TEST_P(WeightedKernels, PooledRowsAreWeightedSums) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16}) {
    MemoryRowStore store = NewStore(type);
    const std::vector<float> values = WeightsOf(store);
    std::vector<float> out(batch_.bags() * dim_, 7.0f);
    PoolRows(store.slots(), batch_.rows.data(), batch_.offsets, out.data(), batch_.weights.data());
    for (size_t bag = 0; bag < batch_.bags(); ++bag)
      for (size_t d = 0; d < dim_; ++d) {
        double sum = 0;
        for (auto k = static_cast<size_t>(batch_.offsets[bag]);
             k < static_cast<size_t>(batch_.offsets[bag + 1]); ++k)
          sum += double{batch_.weights[k]} * values[static_cast<size_t>(batch_.rows[k]) * dim_ + d];
        EXPECT_NEAR(out[bag * dim_ + d], sum, 1e-5) << bag;
      }
  }
}

// Of one block, sums of row blocks are those of all rows, wherever the weights begin.
TEST_P(WeightedKernels, RowBlocksTakeTheWeightsOfTheirLookups) {
  MemoryRowStore store = NewStore(FloatType::kFloat32);
  const std::vector<float> values = WeightsOf(store);
  const std::vector<int64_t> first = {0, 3, 4, 8, 10};
  const std::vector<int32_t> rows = {5, 4, 4, 1, 9, 0, 2, 3, 7}, offsets = {0, 3, 5, 9};
  std::vector<float> out(3 * dim_);
  PoolRowBlocks(store.slots(), first, RowCodec::kFloat32, rows.data(), rows.data(), offsets,
                out.data(), batch_.weights.data());
  for (size_t bag = 0; bag < 3; ++bag)
    for (size_t d = 0; d < dim_; ++d) {
      double sum = 0;
      for (auto k = static_cast<size_t>(offsets[bag]); k < static_cast<size_t>(offsets[bag + 1]);
           ++k)
        sum += double{batch_.weights[k]} * values[static_cast<size_t>(rows[k]) * dim_ + d];
      EXPECT_NEAR(out[bag * dim_ + d], sum, 1e-5) << bag;
    }
}

// The loss Σ pooled·c has the gradient c of each bag, and Σ w·c of each row: what the rows move by,
// and what finite differences of the pooled rows say, which is exact for a linear function.
TEST_P(WeightedKernels, RowsGetTheirWeightsTimesTheGradientsOfBags) {
  MemoryRowStore store = NewStore(FloatType::kFloat32);
  const std::vector<float> before = WeightsOf(store);
  const std::vector<float> gradients = RandomValues(batch_.bags() * dim_, 5);
  std::vector<uint16_t> virtual_worker(batch_.bags());
  for (size_t bag = 0; bag < batch_.bags(); ++bag)
    virtual_worker[bag] = static_cast<uint16_t>(bag / 2);
  std::vector<Lookup> lookups, scratch;
  std::vector<int32_t> bags;
  for (size_t bag = 0; bag < batch_.bags(); ++bag)
    for (int32_t k = batch_.offsets[bag]; k < batch_.offsets[bag + 1]; ++k) {
      bags.push_back(static_cast<int32_t>(bag));
      lookups.push_back(MakeLookup(static_cast<uint32_t>(batch_.rows[static_cast<size_t>(k)]),
                                   static_cast<uint32_t>(k)));
    }
  SortByRow(&lookups, &scratch, kNumRows);
  const RowGradients of_rows{.lookups = lookups,
                             .pooled = gradients.data(),
                             .virtual_worker = virtual_worker.data(),
                             .weights = batch_.weights.data(),
                             .bags = bags.data()};
  const RowStep step{.optimizer = FactorsOf({.type = SparseOptimizerType::kSgd}, 1, 1)};
  ASSERT_TRUE(UpdateRows(step, of_rows, store.slots()));
  const std::vector<float> after = WeightsOf(store);
  const auto loss = [&](std::span<const float> values) {
    MemoryRowStore changed = NewStore(FloatType::kFloat32);
    changed.SetWeights(0, values);
    std::vector<float> pooled(batch_.bags() * dim_);
    PoolRows(changed.slots(), batch_.rows.data(), batch_.offsets, pooled.data(),
             batch_.weights.data());
    double sum = 0;
    for (size_t i = 0; i < pooled.size(); ++i) sum += double{pooled[i]} * gradients[i];
    return sum;
  };
  const double at = loss(before);
  for (size_t row = 0; row < kNumRows; ++row)
    for (size_t d = 0; d < dim_; d += dim_ / 2 + 1) {
      double expected = 0;
      for (size_t k = 0; k < batch_.rows.size(); ++k)
        if (static_cast<size_t>(batch_.rows[k]) == row)
          expected +=
              double{batch_.weights[k]} * gradients[static_cast<size_t>(bags[k]) * dim_ + d];
      EXPECT_NEAR(before[row * dim_ + d] - after[row * dim_ + d], expected, 2e-5) << row;
      std::vector<float> moved = before;
      moved[row * dim_ + d] += 1;
      EXPECT_NEAR(loss(moved) - at, expected, 2e-3) << row;
    }
}

INSTANTIATE_TEST_SUITE_P(Dims, WeightedKernels, ::testing::Values(1, 3, 8, 16, 36, 64, 130));

}  // namespace
}  // namespace renzan
