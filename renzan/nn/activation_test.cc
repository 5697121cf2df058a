#include "renzan/nn/activation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

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

// The formulas in extended precision.
struct Formula {
  const char* name;
  long double (*value)(long double);
  long double (*slope)(long double);
};

long double SigmoidExactly(long double z) {
  const long double e = std::exp(-std::abs(z));
  return (z < 0 ? e : 1) / (1 + e);
}
// σ(z) σ(−z), without cancellation
long double SigmoidSlopeExactly(long double z) { return SigmoidExactly(z) * SigmoidExactly(-z); }
long double ShareExactly(long double z) {
  return std::erfc(-z / std::numbers::sqrt2_v<long double>) / 2;
}

const Formula kFormulas[] = {
    {"silu", [](long double z) { return z * SigmoidExactly(z); },
     [](long double z) { return SigmoidExactly(z) + z * SigmoidSlopeExactly(z); }},
    {"gelu", [](long double z) { return z * ShareExactly(z); },
     [](long double z) {
       return ShareExactly(z) + z * std::numbers::inv_sqrtpi_v<long double> /
                                    std::numbers::sqrt2_v<long double> * std::exp(-z * z / 2);
     }},
    {"tanh", [](long double z) { return std::tanh(z); },
     [](long double z) { return 4 * SigmoidSlopeExactly(2 * z); }},
    {"sigmoid", SigmoidExactly, SigmoidSlopeExactly}};

// How many float32 values lie between two, or a huge number if only one is NaN.
int64_t FloatsBetween(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : int64_t{1} << 40;
  const auto place = [](float x) -> int64_t {
    const int32_t bits = std::bit_cast<int32_t>(x);
    return bits < 0 ? -int64_t{bits & 0x7fffffff} : bits;
  };
  return std::abs(place(a) - place(b));
}

// Of every exponent and both signs, and the ends.
std::vector<float> ManyFloats() {
  std::vector<float> values = {0.0f, -0.0f, -1.2784645f, -0.7517915f};  // and where slopes are zero
  for (uint64_t bits = 1; bits < uint64_t{1} << 32; bits += 200'003)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = -1500; i < 1500; ++i) values.push_back(static_cast<float>(i) / 93.7f);
  for (const float end : {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    values.insert(values.end(), {end, -end});
  return values;
}

TEST(Activations, AreWithinOneUnitOfTheLastPlace) {
  const std::vector<float> z = ManyFloats();
  const int64_t n = static_cast<int64_t>(z.size());
  const BlockedMatrix in = Blocked(z, n, 1);
  for (const Formula& formula : kFormulas) {
    const Activation activation = ActivationNamed(formula.name);
    std::vector<float> first_values, first_slopes;
    testing::OnEveryInstructionSet([&] {
      SCOPED_TRACE(formula.name);
      BlockedMatrix y(n, 1), d = Blocked(std::vector<float>(z.size(), 1), n, 1);
      Activate(activation, in, &y);
      ActivateBackward(activation, in, &d);
      const std::vector<float> values = RowMajor(y), slopes = RowMajor(d);
      if (first_values.empty()) {
        first_values = values;
        first_slopes = slopes;
        for (size_t i = 0; i < z.size(); ++i) {
          const auto exactly = static_cast<long double>(z[i]);
          ASSERT_LE(FloatsBetween(values[i], static_cast<float>(formula.value(exactly))), 1)
              << z[i];
          ASSERT_LE(FloatsBetween(slopes[i], static_cast<float>(formula.slope(exactly))), 1)
              << z[i];
        }
      }
      // NaN, too.
      ASSERT_EQ(std::memcmp(values.data(), first_values.data(), values.size() * 4), 0);
      ASSERT_EQ(std::memcmp(slopes.data(), first_slopes.data(), slopes.size() * 4), 0);
    });
  }
}

// Whatever the shape and precision: each value by itself, and zeros behind the last column.
TEST(Activations, AreOfEachValueAlone) {
  testing::OnEveryInstructionSet([&] {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16})
      for (const int64_t columns : {1, 15, 16, 17, 33, 64}) {
        std::vector<float> values;
        for (int64_t i = 0; i < 3 * columns; ++i)
          values.push_back(static_cast<float>(i % 23 - 11) / 4);  // exact in bfloat16
        const BlockedMatrix z = Blocked(values, 3, columns, precision);
        for (const std::string& name : ActivationNames()) {
          BlockedMatrix y(3, columns, precision);
          Activate(ActivationNamed(name), z, &y);
          for (int64_t i = 0; i < 3 * columns; ++i) {
            BlockedMatrix one(1, 1, precision);
            Activate(ActivationNamed(name),
                     Blocked({&values[static_cast<size_t>(i)], 1}, 1, 1, precision), &one);
            EXPECT_EQ(y.at(i / columns, i % columns), one.at(0, 0)) << name;
          }
          for (int64_t c = columns; c < y.num_blocks() * y.block_columns(); ++c)
            for (int64_t row = 0; row < 3; ++row) {
              const int64_t width = y.block_columns(), at = c % width;
              const float* const line = y.block(c / width) + row * BlockedMatrix::kLanes;
              const bool is_zero = precision == Precision::kFloat32
                                       ? line[at] == 0
                                       : reinterpret_cast<const uint16_t*>(line)[at] == 0;
              EXPECT_TRUE(is_zero) << name << " " << columns << " " << c;
            }
        }
      }
  });
}

// By their definitions, operation by operation.
TEST(Activations, WithSlopesAreThatOfEachColumn) {
  constexpr int64_t kRows = 5, kColumns = 37;
  std::vector<float> values, gradients, slopes;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    values.push_back(static_cast<float>(i % 31 - 15) / 4);
    gradients.push_back(static_cast<float>(i % 7 - 3) / 2);
  }
  for (int64_t c = 0; c < kColumns; ++c) slopes.push_back(static_cast<float>(c - 9) / 8);
  const BlockedMatrix normalized = Blocked(values, kRows, kColumns);
  testing::OnEveryInstructionSet([&] {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      const BlockedMatrix z = Blocked(values, kRows, kColumns, precision);
      const BlockedMatrix dy = Blocked(gradients, kRows, kColumns, precision);
      BlockedMatrix prelu(kRows, kColumns, precision), dice(kRows, kColumns, precision);
      BlockedMatrix d_prelu = Blocked(gradients, kRows, kColumns, precision);
      BlockedMatrix d_dice = Blocked(gradients, kRows, kColumns, precision);
      BlockedMatrix d_prelu_slopes(kRows, kColumns), d_dice_slopes(kRows, kColumns),
          d_normalized(kRows, kColumns);
      Prelu(z, slopes.data(), &prelu);
      PreluBackward(z, slopes.data(), &d_prelu, &d_prelu_slopes);
      Dice(z, normalized, slopes.data(), &dice);
      DiceBackward(z, normalized, slopes.data(), &d_dice, &d_normalized, &d_dice_slopes);
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t c = 0; c < kColumns; ++c) {
          const float x = z.at(row, c), d = dy.at(row, c), slope = slopes[static_cast<size_t>(c)];
          const float p = static_cast<float>(SigmoidExactly(static_cast<long double>(x)));
          const float factor = p + slope * (1 - p);
          const auto stored = [&](float value) {
            BlockedMatrix one(1, 1, precision);
            one.Set(0, 0, value);
            return one.at(0, 0);
          };
          EXPECT_EQ(prelu.at(row, c), stored(x > 0 ? x : slope * x));
          EXPECT_EQ(d_prelu.at(row, c), stored(x > 0 ? d : slope * d));
          EXPECT_EQ(d_prelu_slopes.at(row, c), x > 0 ? 0 : x * d);
          EXPECT_EQ(dice.at(row, c), stored(x * factor));
          EXPECT_EQ(d_dice.at(row, c), stored(d * factor));
          EXPECT_EQ(d_normalized.at(row, c), d * x * ((1 - slope) * (p * (1 - p))));
          EXPECT_EQ(d_dice_slopes.at(row, c), d * x * (1 - p));
        }
    }
  });
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
