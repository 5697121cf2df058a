#include "renzan/embedding/kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/base/simd_testing.h"

namespace renzan {
namespace {

class Kernels : public ::testing::TestWithParam<int64_t> {};

TEST_P(Kernels, PoolingIsInBagOrder) {
  const int64_t dim = GetParam();
  const size_t n = static_cast<size_t>(dim);
  const auto weights = RandomValues(10 * n, 1);
  for (const std::vector<int32_t>& bag :
       {std::vector<int32_t>{}, {3}, {9, 0, 9, 4}, {1, 2, 3, 4, 5, 6, 7}}) {
    std::vector<float> out(n, 7.0f);
    PoolBag(weights.data(), dim, bag, 0.25f, out.data());
    for (size_t d = 0; d < n; ++d) {
      float sum = 0;
      for (size_t i = 0; i < bag.size(); ++i) {
        const float w = weights[static_cast<size_t>(bag[i]) * n + d];
        sum = i == 0 ? w : sum + w;
      }
      EXPECT_EQ(out[d], sum * 0.25f);
    }
  }
  std::vector<float> rows(2 * n);
  const std::vector<int32_t> ids = {8, 2};
  GatherRows(weights.data(), dim, ids, rows.data());
  for (size_t d = 0; d < n; ++d) {
    EXPECT_EQ(rows[d], weights[8 * n + d]);
    EXPECT_EQ(rows[n + d], weights[2 * n + d]);
  }
}

TEST_P(Kernels, BitsDoNotDependOnTheInstructionSet) {
  const int64_t dim = GetParam();
  const size_t n = static_cast<size_t>(dim);
  const auto results = [&] {
    const auto weights = RandomValues(9 * n, 2);
    std::vector<float> w(n);
    PoolBag(weights.data(), dim, std::vector<int32_t>{3, 8, 0, 3}, 0.3f, w.data());
    AddRow(weights.data() + n, dim, w.data());
    return w;
  };
  const std::vector<float> expected = results();
  testing::OnEveryInstructionSet([&] { EXPECT_EQ(results(), expected); });
}

INSTANTIATE_TEST_SUITE_P(Dims, Kernels, ::testing::Values(1, 3, 8, 16, 17, 64, 100));

}  // namespace
}  // namespace renzan
