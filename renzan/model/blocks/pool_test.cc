#include "renzan/model/blocks/pool.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

const Shape kThreeOf2 = {{"s.0", 2}, {"s.1", 2}, {"s.2", 2}};

TEST(PoolBlock, PoolsThePositionsThatAreUsed) {
  const std::vector<int32_t> lengths = {3, 0, 1, 2};
  for (const char* method : {"sum", "mean", "last"}) {
    SCOPED_TRACE(method);
    BlockAlone pool(Pool{method}, {kThreeOf2});
    pool.SetLengths(lengths);
    const std::vector<float> y = pool.Output();
    for (size_t i = 0; i < lengths.size(); ++i)
      for (size_t d = 0; d < 2; ++d) {
        const auto x = [&](int32_t v) {
          return double{pool.inputs[0][i * 6 + static_cast<size_t>(v) * 2 + d]};
        };
        double expected = 0;
        for (int32_t v = 0; v < lengths[i]; ++v) expected += x(v);
        if (method == std::string("mean") && lengths[i] > 0) expected /= lengths[i];
        if (method == std::string("last")) expected = lengths[i] > 0 ? x(lengths[i] - 1) : 0;
        EXPECT_NEAR(double{y[i * 2 + d]}, expected, 1e-6) << i;
      }
    pool.ExpectGradients();
  }
}

TEST(PoolBlock, RefusesVectorsOfSeveralDimensions) {
  EXPECT_EQ(Refusal(Pool{}, {{{"a", 2}, {"b", 3}}}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 2, 3");
}

}  // namespace
}  // namespace renzan
