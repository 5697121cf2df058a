#include "renzan/model/blocks/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(MatchBlock, ComputesItsDefinition) {
  for (const int64_t width : {1, 5, 16, 40})
    for (const double temperature : {1.0, 0.05}) {
      BlockAlone match(Match{temperature}, {{{"q", width}}, {{"v", width}}});
      const std::vector<float> logits = match.Output();
      ASSERT_EQ(logits.size(), 4u);
      const auto [parameters, d_inputs] = match.Gradients();
      const std::vector<float> d = RandomValues(4, 9);  // of the logits, as in BlockAlone
      for (size_t i = 0; i < 4; ++i) {
        const size_t first = i * static_cast<size_t>(width);
        double product = 0;
        for (size_t c = first; c < first + static_cast<size_t>(width); ++c) {
          product += double{match.inputs[0][c]} * double{match.inputs[1][c]};
          for (const size_t input : {0, 1})
            EXPECT_NEAR(double{d_inputs[input][c]},
                        double{d[i]} * double{match.inputs[1 - input][c]} / temperature,
                        1e-6 / temperature);
        }
        EXPECT_NEAR(double{logits[i]}, product / temperature, 1e-5 / temperature);
      }
    }
}

TEST(MatchBlock, GradientsAgreeWithFiniteDifferences) {
  BlockAlone(Match{}, {{{"q", 7}}, {{"v", 7}}}).ExpectGradients();
  BlockAlone(Match{.temperature = 0.5}, {{{"q", 40}}, {{"v", 40}}}).ExpectGradients();
  ExpectBFloat16(Match{.temperature = 0.5}, {{{"q", 40}}, {{"v", 40}}});
}

TEST(MatchBlock, SaysThatItRanksItems) {
  EXPECT_TRUE(BlockAlone(Match{0.25}, {{{"q", 3}}, {{"v", 3}}}).block().IsMatch());
}

TEST(MatchBlock, RejectsOtherThanTwoVectorsOfOneWidth) {
  EXPECT_THAT(Refusal(Match{}, {{{"q", 3}}}),
              testing::HasSubstr("block block takes a query and an item, but has 1 input"));
  EXPECT_THAT(Refusal(Match{}, {{{"q", 3}}, {{"v", 4}}}),
              testing::HasSubstr("of one width, but has 1 vector of 3 and 1 vector of 4"));
}

}  // namespace
}  // namespace renzan
