#include "renzan/model/blocks/project.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(ProjectBlock, ProjectsOnlyVectorsOfAnotherDimension) {
  BlockAlone project(Project{2}, {{{"a", 2}, {"b", 3}, {"c", 1}}});
  const std::vector<float> y = project.Output();
  EXPECT_EQ(project.layout().parameters().size(), 2u);
  for (size_t sample = 0; sample < 4; ++sample) {
    const float* x = project.inputs[0].data() + sample * 6;
    const float* const row = y.data() + sample * 6;
    for (size_t k = 0; k < 2; ++k) {
      double b = 0;
      for (size_t i = 0; i < 3; ++i)
        b += double{project.parameter("b.weight")[k * 3 + i]} * double{x[2 + i]};
      EXPECT_EQ(row[k], x[k]);
      EXPECT_NEAR(double{row[2 + k]}, b, 1e-6);
      EXPECT_NEAR(double{row[4 + k]}, double{project.parameter("c.weight")[k]} * double{x[5]},
                  1e-6);
    }
  }
  project.ExpectGradients();
}

// As an mlp of one linear layer without a bias would, vector by vector.
TEST(ProjectBlock, SharesItsMatrixAmongPositions) {
  BlockAlone project(Project{2}, {{{"s.0", 3}, {"s.1", 3}}});
  project.SetLengths({2, 0, 1, 2});
  ASSERT_EQ(project.layout().parameters().size(), 1u);
  const std::span<const float> w = project.parameter("weight");
  ASSERT_EQ(w.size(), 6u);
  const std::vector<float> y = project.Output();
  const size_t used[] = {2, 0, 1, 2};
  for (size_t sample = 0; sample < 4; ++sample)
    for (size_t at = 0; at < 2; ++at)
      for (size_t k = 0; k < 2; ++k) {
        double sum = 0;
        for (size_t i = 0; i < 3 && at < used[sample]; ++i)
          sum += double{w[k * 3 + i]} * double{project.inputs[0][sample * 6 + at * 3 + i]};
        EXPECT_NEAR(double{y[sample * 4 + at * 2 + k]}, sum, 1e-6);
      }
}

}  // namespace
}  // namespace renzan
