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

}  // namespace
}  // namespace renzan
