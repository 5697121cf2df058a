#include "renzan/model/blocks/l2_normalize.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(L2NormalizeBlock, GivesLengthOne) {
  constexpr size_t kColumns = 12;
  for (const bool per_vector : {false, true}) {
    SCOPED_TRACE(per_vector);
    BlockAlone block(L2Normalize{per_vector}, {{{"a", 4}, {"b", 4}, {"c", 4}}});
    const std::vector<float> y = block.Output();
    const size_t width = per_vector ? 4 : kColumns;
    for (size_t first = 0; first < y.size(); first += width) {
      double squares = 0;
      for (size_t c = 0; c < width; ++c) squares += std::pow(double{block.inputs[0][first + c]}, 2);
      for (size_t c = 0; c < width; ++c)
        EXPECT_NEAR(double{y[first + c]}, double{block.inputs[0][first + c]} / std::sqrt(squares),
                    1e-6);
    }
    block.ExpectGradients();
  }
}

TEST(L2NormalizeBlock, DividesShortVectorsByEpsilon) {
  BlockAlone block(L2Normalize{.epsilon = 0.5}, {{{"x", 3}}});
  for (float& x : block.inputs[0]) x *= 0.01f;
  const std::vector<float> y = block.Output();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], 2 * block.inputs[0][i]);
  block.ExpectGradients();
  std::fill(block.inputs[0].begin(), block.inputs[0].end(), 0.0f);
  for (const float each : block.Output()) EXPECT_EQ(each, 0);
}

TEST(L2NormalizeBlock, NormalizesThePositionsOfSequencesThatAreUsed) {
  BlockAlone block(L2Normalize{.per_vector = true}, {{{"a", 4}, {"b", 4}, {"c", 4}}});
  block.SetLengths({3, 0, 1, 2});
  EXPECT_TRUE(block.block().sequence());
  block.ExpectGradients();
  EXPECT_FALSE(BlockAlone(L2Normalize{}, {{{"a", 4}, {"b", 4}}}).block().sequence());
}

TEST(L2NormalizeBlock, WorksInBFloat16) {
  ExpectBFloat16(L2Normalize{}, {{{"x", 40}}});
  ExpectBFloat16(L2Normalize{.per_vector = true}, {{{"a", 9}, {"b", 9}}}, {0, 1, 2, 1});
}

TEST(L2NormalizeBlock, RefusesVectorsOfSeveralDimensionsOneByOne) {
  EXPECT_EQ(Refusal(L2Normalize{.per_vector = true}, {{{"a", 2}, {"b", 3}}}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 2, 3");
}

}  // namespace
}  // namespace renzan
