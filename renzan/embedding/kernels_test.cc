#include "renzan/embedding/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/base/simd_testing.h"
#include "renzan/optim/gradient_norm.h"

namespace renzan {
namespace {

constexpr size_t kRows = 10;

// Bags of a few lengths: empty ones, first and last too, and one longer than rows are prefetched.
const std::vector<int32_t> kOffsets = {0, 0, 1, 5, 5, 12, 62, 62};

std::vector<int32_t> Ids() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kOffsets.back(); ++i) ids.push_back(i * i * 7 % int32_t{kRows});
  return ids;
}

// Rows looked up once, twice and often, by samples in any order.
const std::vector<Lookup> kLookups = {
    MakeLookup(1, 4), MakeLookup(3, 0), MakeLookup(3, 5), MakeLookup(4, 1), MakeLookup(8, 0),
    MakeLookup(8, 1), MakeLookup(8, 2), MakeLookup(8, 2), MakeLookup(8, 5), MakeLookup(9, 3)};
constexpr size_t kSamples = 6;

// The summed gradient of each row, by definition.
std::map<size_t, std::vector<float>> RowGradients(const std::vector<float>& pooled, size_t dim) {
  std::map<size_t, std::vector<float>> sums;
  for (const Lookup lookup : kLookups) {
    const float* g = pooled.data() + SampleOf(lookup) * dim;
    const auto [sum, first] = sums.try_emplace(RowOf(lookup), g, g + dim);
    for (size_t d = 0; d < dim && !first; ++d) sum->second[d] += g[d];
  }
  return sums;
}

struct Table {
  std::vector<float> weights, state;
};

Table NewTable(size_t dim) {
  Table table{RandomValues(kRows * dim, 1), RandomValues(kRows * dim, 2)};
  for (float& s : table.state) s = s * s;
  return table;
}

class Kernels : public ::testing::TestWithParam<int64_t> {
 protected:
  const int64_t dim_ = GetParam();
  const size_t width_ = static_cast<size_t>(dim_);
};

TEST_P(Kernels, GatheringCopiesRows) {
  const auto weights = RandomValues(kRows * width_, 1);
  const std::vector<int32_t> ids = Ids();
  std::vector<float> out(ids.size() * width_);
  GatherRows(weights.data(), dim_, ids, out.data());
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t d = 0; d < width_; ++d)
      EXPECT_EQ(out[i * width_ + d], weights[static_cast<size_t>(ids[i]) * width_ + d]);
}

TEST_P(Kernels, PoolingIsInBagOrder) {
  const auto weights = RandomValues(kRows * width_, 1);
  const std::vector<int32_t> ids = Ids();
  const size_t bags = kOffsets.size() - 1;
  for (const bool mean : {false, true}) {
    std::vector<float> out(bags * width_, 7.0f);
    PoolRows(weights.data(), dim_, ids.data(), kOffsets, mean, out.data());
    for (size_t bag = 0; bag < bags; ++bag) {
      const size_t begin = static_cast<size_t>(kOffsets[bag]);
      const size_t end = static_cast<size_t>(kOffsets[bag + 1]);
      for (size_t d = 0; d < width_; ++d) {
        float sum = 0;
        for (size_t k = begin; k < end; ++k) {
          const float w = weights[static_cast<size_t>(ids[k]) * width_ + d];
          sum = k == begin ? w : sum + w;
        }
        if (mean && end > begin + 1) sum *= 1.0f / static_cast<float>(end - begin);
        EXPECT_EQ(out[bag * width_ + d], sum) << bag;
      }
    }
  }
}

// Σ g², in chunks of 16, each by a balanced tree.
float SumOfSquaresInChunks(const std::vector<float>& g) {
  float sum = 0;
  for (size_t begin = 0; begin < g.size(); begin += 16) {
    float tree[16] = {};
    for (size_t i = 0; i < 16 && begin + i < g.size(); ++i) tree[i] = g[begin + i] * g[begin + i];
    for (size_t half = 8; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) tree[i] += tree[i + half];
    sum += tree[0];
  }
  return sum;
}

// One step by definition, for one row.
void TakeStep(const RowStep& step, std::vector<float> g, float* w, float* s) {
  using enum SparseOptimizerType;
  for (size_t d = 0; d < g.size(); ++d) {
    g[d] *= step.gradient_scale;
    g[d] += step.l2 * w[d];
    w[d] *= step.kept;
  }
  float row_rate = step.lr;
  if (step.optimizer == kRowWiseAdagrad) {
    *s += SumOfSquaresInChunks(g) / static_cast<float>(g.size());
    row_rate = step.lr / (std::sqrt(*s) + step.epsilon);
  }
  for (size_t d = 0; d < g.size(); ++d) {
    if (step.optimizer == kAdagrad) {
      s[d] += g[d] * g[d];
      w[d] -= step.lr * g[d] / (std::sqrt(s[d]) + step.epsilon);
    } else {
      w[d] -= row_rate * g[d];
    }
  }
}

TEST_P(Kernels, AnUpdateIsOneStepOfTheSummedGradientPerRow) {
  using enum SparseOptimizerType;
  const auto pooled = RandomValues(kSamples * width_, 3);
  const float lr = 0.1f, epsilon = 1e-8f;
  for (const SparseOptimizerType optimizer : {kSgd, kAdagrad, kRowWiseAdagrad}) {
    for (const RowStep& step :
         {RowStep{.optimizer = optimizer, .lr = lr, .epsilon = epsilon},
          {.optimizer = optimizer, .lr = lr, .epsilon = epsilon, .gradient_scale = 0.3f},
          {.optimizer = optimizer, .lr = lr, .epsilon = epsilon, .l2 = 0.01f},
          {.optimizer = optimizer, .lr = lr, .epsilon = epsilon, .kept = 0.9f}}) {
      Table expected = NewTable(width_), table = expected;
      const size_t state_width = optimizer == kAdagrad ? width_ : 1;
      for (const auto& [row, g] : RowGradients(pooled, width_))
        TakeStep(step, g, expected.weights.data() + row * width_,
                 expected.state.data() + row * state_width);
      EXPECT_TRUE(UpdateRows(step, kLookups, pooled.data(), dim_, table.weights.data(),
                             table.state.data()));
      EXPECT_EQ(table.weights, expected.weights);
      EXPECT_EQ(table.state, expected.state);
    }
  }
}

TEST_P(Kernels, AnUpdateSeesEveryBadValue) {
  using enum SparseOptimizerType;
  const float bad = std::numeric_limits<float>::infinity();
  for (const SparseOptimizerType optimizer : {kSgd, kAdagrad, kRowWiseAdagrad}) {
    for (const size_t sample : {4u, 2u, 3u}) {  // of the first, a middle and the last row
      Table table = NewTable(width_);
      auto pooled = RandomValues(kSamples * width_, 3);
      pooled[sample * width_ + width_ / 2] = bad;
      EXPECT_FALSE(UpdateRows({.optimizer = optimizer, .lr = 0.1f, .epsilon = 1e-8f}, kLookups,
                              pooled.data(), dim_, table.weights.data(), table.state.data()));
    }
  }
}

TEST_P(Kernels, SquaresAreOfTheSummedGradients) {
  const auto pooled = RandomValues(kSamples * width_, 3);
  std::vector<double> expected;
  for (const auto& [row, g] : RowGradients(pooled, width_))
    expected.push_back(SumOfSquares(g.data(), dim_));
  std::vector<double> squares(kLookups.size());
  squares.resize(RowGradientSquares(kLookups, pooled.data(), dim_, squares.data()));
  EXPECT_EQ(squares, expected);
}

TEST_P(Kernels, BitsDoNotDependOnTheInstructionSet) {
  using enum SparseOptimizerType;
  const auto results = [&] {
    Table table = NewTable(width_);
    const auto pooled = RandomValues(kSamples * width_, 3);
    for (const SparseOptimizerType optimizer : {kSgd, kAdagrad, kRowWiseAdagrad})
      UpdateRows({.optimizer = optimizer, .lr = 0.1f, .epsilon = 1e-8f}, kLookups, pooled.data(),
                 dim_, table.weights.data(), table.state.data());
    std::vector<float> values((kOffsets.size() - 1) * width_);
    PoolRows(table.weights.data(), dim_, Ids().data(), kOffsets, true, values.data());
    values.insert(values.end(), table.weights.begin(), table.weights.end());
    values.insert(values.end(), table.state.begin(), table.state.end());
    return values;
  };
  const std::vector<float> expected = results();
  testing::OnEveryInstructionSet([&] { EXPECT_EQ(results(), expected); });
}

INSTANTIATE_TEST_SUITE_P(Dims, Kernels, ::testing::Values(1, 3, 8, 16, 17, 64, 100, 300));

}  // namespace
}  // namespace renzan
