#include "renzan/nn/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "renzan/nn/activation_in_float.h"
#include "renzan/tensor/blocked_matrix_testing.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

TEST(Activations, HaveTheirValuesAndSlopes) {
  // By the error function, and what follows from σ(1) = 0.7310585786, in ten digits.
  struct Known {
    const char* name;
    double at_1, at_minus_2;
  };
  for (const Known& known :
       {Known{"relu", 1, 0}, Known{"silu", 0.7310585786, -0.2384058440},
        Known{"gelu", 0.8413447461, -0.0455002639}, Known{"tanh", 0.7615941560, -0.9640275801},
        Known{"sigmoid", 0.7310585786, 0.1192029220}}) {
    const Activation activation = ActivationNamed(known.name);
    const BlockedMatrix z = Blocked(std::vector<float>{1, -2}, 2, 1);
    BlockedMatrix y(2, 1);
    Activate(activation, z, &y);
    EXPECT_NEAR(double{y.at(0, 0)}, known.at_1, 1e-7) << known.name;
    EXPECT_NEAR(double{y.at(1, 0)}, known.at_minus_2, 1e-7) << known.name;
    for (const float at : {-40.0f, -3.0f, -0.5f, 0.25f, 2.0f, 40.0f}) {
      const float h = std::max(1.0f, std::abs(at)) * 0x1p-9f;
      const BlockedMatrix around = Blocked(std::vector<float>{at - h, at + h}, 2, 1);
      BlockedMatrix values(2, 1), slope = Blocked(std::vector<float>{3}, 1, 1);
      Activate(activation, around, &values);
      ActivateBackward(activation, Blocked(std::vector<float>{at}, 1, 1), &slope);
      const double differences =
          (double{values.at(1, 0)} - double{values.at(0, 0)}) / (2.0 * double{h});
      EXPECT_NEAR(double{slope.at(0, 0)}, 3 * differences, 2e-3) << known.name << " at " << at;
    }
  }
}

// Whatever the instruction set, with zeros in the columns that fill up a block.
TEST(Activations, InFloatAreAlmostThoseInDouble) {
  std::vector<float> at;
  for (float z = -100; z <= 100; z += 0.37f) at.push_back(z);
  const int64_t rows = std::ssize(at);
  for (const char* name : {"silu", "sigmoid", "tanh"})
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      const Activation activation = ActivationNamed(name);
      const double most = precision == Precision::kFloat32 ? 1e-6 : 1e-2;
      const BlockedMatrix z = Blocked(at, rows, 1, precision);
      BlockedMatrix expected(rows, 1, precision), expected_d(rows, 1, precision);
      const std::vector<float> ones(at.size(), 1.0f);
      expected_d = Blocked(ones, rows, 1, precision);
      Activate(activation, z, &expected);
      ActivateBackward(activation, z, &expected_d);
      std::vector<std::vector<float>> all;
      testing::OnEveryInstructionSet([&] {
        BlockedMatrix y(rows, 1, precision), d = Blocked(ones, rows, 1, precision);
        ActivateInFloat(activation, z, &y);
        ActivateInFloatBackward(activation, z, &d);
        for (int64_t r = 0; r < rows; ++r) {
          const double size = std::max(1.0, std::abs(double{at[static_cast<size_t>(r)]}));
          EXPECT_NEAR(double{y.at(r, 0)}, double{expected.at(r, 0)}, most * size) << name;
          EXPECT_NEAR(double{d.at(r, 0)}, double{expected_d.at(r, 0)}, most * size) << name;
        }
        EXPECT_EQ(y.data()[1], 0.0f) << name;
        all.push_back(RowMajor(y));
        const std::vector<float> slopes = RowMajor(d);
        all.back().insert(all.back().end(), slopes.begin(), slopes.end());
        EXPECT_EQ(all.back(), all.front()) << name;
      });
    }
}

// Products rely on the zeros that fill up the last block of columns, and NaN must be seen.
TEST(Activations, ReluKeepsNanAndZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  testing::OnEveryInstructionSet([&] {
    const BlockedMatrix z = Blocked(std::vector<float>{-1, nan, 3, -0.0f}, 1, 4);
    BlockedMatrix y(1, 4);
    Activate(Activation::kRelu, z, &y);
    EXPECT_EQ(y.at(0, 0), 0.0f);
    EXPECT_TRUE(std::isnan(y.at(0, 1)));
    EXPECT_EQ(y.at(0, 2), 3.0f);
    EXPECT_EQ(y.at(0, 3), 0.0f);
    EXPECT_EQ(y.data()[4], 0.0f);
    BlockedMatrix d = Blocked(std::vector<float>{5, 5, 5, 5}, 1, 4);
    ActivateBackward(Activation::kRelu, z, &d);
    EXPECT_EQ(RowMajor(d), (std::vector<float>{0, 0, 5, 0}));
  });
}

}  // namespace
}  // namespace renzan
