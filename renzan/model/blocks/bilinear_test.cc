#include "renzan/model/blocks/bilinear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

// 6 columns and 4.
const std::vector<Shape> kStreams = {{{"x", 2}, {"z", 4}}, {{"y", 4}}};

TEST(BilinearBlock, ComputesItsDefinition) {
  for (const size_t heads : {1, 2}) {
    BlockAlone bilinear(Bilinear{.heads = static_cast<int64_t>(heads)}, kStreams);
    const std::vector<float> logits = bilinear.Output();
    ASSERT_EQ(logits.size(), 4u);
    const size_t a = 6 / heads, b = 4 / heads;
    for (size_t sample = 0; sample < 4; ++sample) {
      const float* const x = bilinear.inputs[0].data() + sample * 6;
      const float* const y = bilinear.inputs[1].data() + sample * 4;
      double logit = double{bilinear.parameter("bias")[0]};
      for (size_t i = 0; i < 6; ++i)
        logit += double{bilinear.parameter("x.weight")[i]} * double{x[i]};
      for (size_t j = 0; j < 4; ++j)
        logit += double{bilinear.parameter("y.weight")[j]} * double{y[j]};
      for (size_t h = 0; h < heads; ++h) {
        const auto weight = bilinear.parameter(fmt::format("{}.weight", h));
        ASSERT_EQ(weight.size(), a * b);
        for (size_t i = 0; i < a; ++i)
          for (size_t j = 0; j < b; ++j)
            logit += double{x[h * a + i]} * double{weight[i * b + j]} * double{y[h * b + j]};
      }
      EXPECT_NEAR(double{logits[sample]}, logit, 1e-5);
    }
  }
}

TEST(BilinearBlock, GradientsAgreeWithFiniteDifferences) {
  for (const int64_t heads : {1, 2})
    BlockAlone(Bilinear{.heads = heads}, kStreams).ExpectGradients();
  BlockAlone(Bilinear{.heads = 3}, {{{"x", 36}}, {{"y", 33}}}).ExpectGradients();
}

void ExpectRejected(int64_t heads, const std::vector<Shape>& streams, const std::string& why) {
  try {
    BlockAlone(Bilinear{.heads = heads}, streams);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr(why));
  }
}

TEST(BilinearBlock, RejectsStreamsThatDoNotFit) {
  ExpectRejected(1, {{{"x", 4}}}, "block block takes two inputs, but has 1 input");
  ExpectRejected(
      2, {{{"x", 4}}, {{"y", 5}}},
      "cuts both inputs into 2 equal parts, but they have 1 vector of 4 and 1 vector of 5");
  ExpectRejected(4, {{{"x", 6}}, {{"y", 4}}}, "1 vector of 6 and 1 vector of 4");
  ExpectRejected(1, {{{"x", 6}}, {}}, "1 vector of 6 and 0 vectors");
}

}  // namespace
}  // namespace renzan
