#include "renzan/nn/dropout.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/philox.h"
#include "renzan/tensor/blocked_matrix_testing.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

// Dropout applied to ones: 0 or the scale.
std::vector<float> Mask(const Dropout& dropout, TrainingPosition position, int64_t samples,
                        int64_t units) {
  const std::vector<float> ones(static_cast<size_t>(samples * units), 1.0f);
  BlockedMatrix y = Blocked(ones, samples, units);
  dropout.Apply(position, &y);
  return RowMajor(y);
}

TEST(Dropout, AgreesWithTheReferenceImplementation) {
  const Dropout dropout({.rate = 0.3, .seed = 7}, "top.0");
  const uint64_t key = PhiloxKey(7, "dropout/top.0");
  const int64_t step = (int64_t{5} << 32) + 3;
  for (const int64_t units : {1, 15, 16, 64, 100, 130}) {
    const std::vector<float> mask = Mask(dropout, {step, 40}, 3, units);
    for (uint64_t sample = 0; sample < 3; ++sample)
      for (uint64_t unit = 0; unit < static_cast<uint64_t>(units); ++unit) {
        const uint64_t counter = unit / 64 * 16 + unit % 16;
        const uint32_t word = Philox::Draw(key, static_cast<uint64_t>(step),
                                           (40 + sample) << 32 | counter)[unit % 64 / 16];
        const float expected = word < static_cast<uint32_t>(0.3 * 0x1.0p32) ? 0.0f : 1 / 0.7f;
        EXPECT_EQ(mask[sample * static_cast<uint64_t>(units) + unit], expected)
            << "sample " << sample << ", unit " << unit;
      }
  }
}

TEST(Dropout, DropsTheStatedShareAndKeepsTheMean) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const std::vector<float> mask = Mask(Dropout({.rate = rate, .seed = 1}, "l"), {2, 0}, 512, 512);
    double dropped = 0, sum = 0;
    for (float x : mask) {
      dropped += x == 0 ? 1 : 0;
      sum += static_cast<double>(x);
    }
    const double n = static_cast<double>(mask.size());
    EXPECT_NEAR(dropped / n, rate, 0.005);
    EXPECT_NEAR(sum / n, 1, 0.02);
  }
}

TEST(Dropout, TheMaskDependsOnSeedStepLayerAndSample) {
  const std::vector<float> mask = Mask(Dropout({.rate = 0.5, .seed = 1}, "a"), {3, 8}, 1, 64);
  EXPECT_NE(Mask(Dropout({.rate = 0.5, .seed = 2}, "a"), {3, 8}, 1, 64), mask);
  EXPECT_NE(Mask(Dropout({.rate = 0.5, .seed = 1}, "b"), {3, 8}, 1, 64), mask);
  EXPECT_NE(Mask(Dropout({.rate = 0.5, .seed = 1}, "a"), {4, 8}, 1, 64), mask);
  EXPECT_NE(Mask(Dropout({.rate = 0.5, .seed = 1}, "a"), {3, 9}, 1, 64), mask);
  EXPECT_EQ(Mask(Dropout({.rate = 0.5, .seed = 1}, "a"), {3, 8}, 1, 64), mask);
}

TEST(Dropout, TheMaskOfASampleDoesNotDependOnItsPlacement) {
  const Dropout dropout({.rate = 0.5, .seed = 1}, "a");
  const std::vector<float> whole = Mask(dropout, {3, 0}, 8, 20);
  const std::vector<float> part = Mask(dropout, {3, 5}, 2, 20);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 5 * 20));
}

TEST(Dropout, BitsDoNotDependOnTheInstructionSet) {
  const Dropout dropout({.rate = 0.37, .seed = 5}, "a");
  const std::vector<float> expected = Mask(dropout, {3, 0}, 4, 200);
  testing::OnEveryInstructionSet([&] { EXPECT_EQ(Mask(dropout, {3, 0}, 4, 200), expected); });
}

}  // namespace
}  // namespace renzan
