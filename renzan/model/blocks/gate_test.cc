#include "renzan/model/blocks/gate.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(GateBlock, MixesExpertsBySoftmax) {
  constexpr size_t kIn = 5, kWidth = 19, kExperts = 3;
  const Shape expert = {{"e", kWidth}};
  BlockAlone gate(Gate{}, {{{"x", 2}, {"y", 3}}, expert, expert, expert});
  const std::vector<float> y = gate.Output();
  const auto weight = gate.parameter("weight");
  ASSERT_EQ(weight.size(), kIn * kExperts);
  for (size_t i = 0; i < 4; ++i) {
    double shares[kExperts], sum = 0;
    for (size_t e = 0; e < kExperts; ++e) {
      double logit = 0;
      for (size_t c = 0; c < kIn; ++c)
        logit += double{weight[e * kIn + c]} * double{gate.inputs[0][i * kIn + c]};
      sum += shares[e] = std::exp(logit);
    }
    for (size_t c = 0; c < kWidth; ++c) {
      double expected = 0;
      for (size_t e = 0; e < kExperts; ++e)
        expected += shares[e] / sum * double{gate.inputs[1 + e][i * kWidth + c]};
      EXPECT_NEAR(double{y[i * kWidth + c]}, expected, 1e-5);
    }
  }
  gate.ExpectGradients();
}

TEST(GateBlock, TakesExpertsOfSeveralVectorsAndOfOneColumn) {
  BlockAlone(Gate{}, {{{"x", 3}}, {{"a", 2}, {"b", 2}}, {{"c", 4}}}).ExpectGradients();
  BlockAlone(Gate{}, {{{"x", 1}}, {{"a", 1}}, {{"b", 1}}}).ExpectGradients();
}

TEST(GateBlock, IsFiniteForLargeLogits) {
  BlockAlone gate(Gate{}, {{{"x", 3}}, {{"a", 2}}, {{"b", 2}}});
  for (float& x : gate.inputs[0]) x *= 1e4f;
  for (const float y : gate.Output()) EXPECT_TRUE(std::isfinite(y));
}

TEST(GateBlock, WorksInBFloat16) {
  ExpectBFloat16(Gate{}, {{{"x", 40}}, {{"a", 35}}, {{"b", 35}}});
}

TEST(GateBlock, RefusesExpertsThatDoNotFit) {
  EXPECT_EQ(Refusal(Gate{}, {{{"x", 2}}, {{"a", 3}}}),
            "block block takes the input of its gate and two experts or more, but has 2 inputs");
  EXPECT_EQ(Refusal(Gate{}, {{{"x", 2}}, {{"a", 3}}, {{"b", 4}}}),
            "block block mixes experts of one width, but has 1 vector of 3 and 1 vector of 4");
}

}  // namespace
}  // namespace renzan
