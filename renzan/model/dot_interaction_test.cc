#include "renzan/model/dot_interaction.h"

#include <gtest/gtest.h>

#include "renzan/base/blocked_matrix_testing.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/testing.h"

namespace renzan {
namespace {

struct Shape {
  int64_t f, dim;
};

class DotInteraction : public testing::TestWithParam<Shape> {};

TEST_P(DotInteraction, AgreesWithTheReference) {
  const auto [f, dim] = GetParam();
  const int64_t n = 3, width = DotInteractionWidth(f, dim);
  const auto x = RandomValues(static_cast<size_t>(n * f * dim), 1);
  BlockedMatrix result(n, width);
  DotInteractionForward(Blocked(x, n, f * dim), f, dim, &result);
  const std::vector<float> out = RowMajor(result);
  for (int64_t s = 0; s < n; ++s) {
    const float* sample = x.data() + s * f * dim;
    const float* y = out.data() + s * width;
    for (int64_t k = 0; k < dim; ++k) EXPECT_EQ(*y++, sample[k]);
    for (int64_t i = 1; i < f; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t k = 0; k < dim; ++k)
          dot += double{sample[i * dim + k]} * double{sample[j * dim + k]};
        ASSERT_NEAR(*y++, dot, 1e-4);
      }
    }
  }
}

TEST_P(DotInteraction, GradientsAgreeWithFiniteDifferences) {
  const auto [f, dim] = GetParam();
  const int64_t n = 2, width = DotInteractionWidth(f, dim);
  auto x = RandomValues(static_cast<size_t>(n * f * dim), 1);
  const auto weights = RandomValues(static_cast<size_t>(n * width), 2);
  BlockedMatrix dx(n, f * dim), result(n, width);
  DotInteractionBackward(Blocked(x, n, f * dim), Blocked(weights, n, width), f, dim, &dx);
  const double error = GradientError(x, RowMajor(dx), [&] {
    DotInteractionForward(Blocked(x, n, f * dim), f, dim, &result);
    const std::vector<float> out = RowMajor(result);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += double{weights[i]} * double{out[i]};
    return sum;
  });
  EXPECT_LT(error, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DotInteraction,
                         testing::Values(Shape{2, 1}, Shape{3, 5}, Shape{7, 8}, Shape{16, 16},
                                         Shape{27, 16}, Shape{9, 33}, Shape{1, 4}));

}  // namespace
}  // namespace renzan
