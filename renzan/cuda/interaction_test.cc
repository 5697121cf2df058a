#include "renzan/cuda/interaction.cuh"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "renzan/cuda/testing.h"

namespace renzan::cuda {
namespace {

struct InteractionCase {
  int64_t samples;
  int32_t f, dim;
  int64_t more_stride;  // than the width
};

class Interactions : public OnGpu,
                     public ::testing::WithParamInterface<std::tuple<Precision, InteractionCase>> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    const auto& [precision, c] = GetParam();
    width_ = c.dim + int64_t{c.f} * (c.f - 1) / 2;
    shape_ = {.samples = c.samples,
              .vectors = c.f,
              .dim = c.dim,
              .out_stride = width_ + c.more_stride,
              .precision = precision};
    x_ = Values(c.samples * c.f * c.dim, 1);
    d_out_ = Values(c.samples * shape_.out_stride, 2);
    // What is behind the width must not matter.
    for (size_t i = 0; i < d_out_.size(); ++i)
      if (static_cast<int64_t>(i) % shape_.out_stride >= width_) d_out_[i] = NAN;
  }

  bool half() const { return shape_.precision == Precision::kBFloat16; }
  std::vector<float> Values(int64_t n, uint64_t seed) const {
    std::vector<float> values = Floats(n, seed);
    if (half())
      for (float& value : values) value = FromBFloat16(ToBFloat16(value));
    return values;
  }
  int64_t features() const { return int64_t{shape_.vectors} * shape_.dim; }

  // Of samples [first, first + n).
  std::vector<float> Forward(int64_t first, int64_t n) const {
    InteractionShape shape = shape_;
    shape.samples = n;
    const DeviceMemory x = Part(x_, first * features(), n * features());
    const DeviceMemory out = Poisoned(n * shape.out_stride);
    InteractionForward(shape, x.as<void>(), out.as<void>(), nullptr);
    return CopiedFromGpu(out, shape.precision);
  }
  std::vector<float> Backward(int64_t first, int64_t n) const {
    InteractionShape shape = shape_;
    shape.samples = n;
    const DeviceMemory x = Part(x_, first * features(), n * features());
    const DeviceMemory d_out = Part(d_out_, first * shape.out_stride, n * shape.out_stride);
    const DeviceMemory d_x = Poisoned(n * features());
    InteractionBackward(shape, x.as<void>(), d_out.as<void>(), d_x.as<void>(), nullptr);
    return CopiedFromGpu(d_x, shape.precision);
  }

  InteractionShape shape_;
  int64_t width_ = 0;
  std::vector<float> x_, d_out_;

 private:
  DeviceMemory Part(const std::vector<float>& values, int64_t first, int64_t n) const {
    return CopiedToGpu(
        std::span(values).subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
        shape_.precision);
  }
  DeviceMemory Poisoned(int64_t n) const {
    return CopiedToGpu(std::vector<float>(static_cast<size_t>(n), NAN), shape_.precision);
  }
};

TEST_P(Interactions, ForwardIsVectorZeroAndThePairsProducts) {
  std::vector<double> expected;
  for (int64_t s = 0; s < shape_.samples; ++s) {
    const float* x = x_.data() + s * features();
    const size_t end = expected.size() + static_cast<size_t>(shape_.out_stride);
    expected.insert(expected.end(), x, x + shape_.dim);
    for (int i = 1; i < shape_.vectors; ++i)
      for (int j = 0; j < i; ++j) {
        double sum = 0;
        for (int k = 0; k < shape_.dim; ++k)
          sum += double{x[i * shape_.dim + k]} * x[j * shape_.dim + k];
        expected.push_back(sum);
      }
    expected.resize(end);
  }
  const std::vector<float> got = Forward(0, shape_.samples);
  ExpectNear(got, expected, kSumTolerance, half() ? kBFloat16Rounding : 0);
  for (int64_t s = 0; s < shape_.samples; ++s) {
    const float* row = got.data() + s * shape_.out_stride;
    EXPECT_TRUE(std::equal(row, row + shape_.dim, x_.data() + s * features()));
    EXPECT_TRUE(std::all_of(row + width_, row + shape_.out_stride, [](float v) { return v == 0; }));
  }
}

TEST_P(Interactions, BackwardIsItsGradient) {
  std::vector<double> expected(x_.size());
  for (int64_t s = 0; s < shape_.samples; ++s) {
    const float* x = x_.data() + s * features();
    const float* gradient = d_out_.data() + s * shape_.out_stride;
    double* dx = expected.data() + s * features();
    std::copy_n(gradient, shape_.dim, dx);
    const float* pair = gradient + shape_.dim;
    for (int i = 1; i < shape_.vectors; ++i)
      for (int j = 0; j < i; ++j, ++pair)
        for (int k = 0; k < shape_.dim; ++k) {
          dx[i * shape_.dim + k] += double{*pair} * x[j * shape_.dim + k];
          dx[j * shape_.dim + k] += double{*pair} * x[i * shape_.dim + k];
        }
  }
  ExpectNear(Backward(0, shape_.samples), expected, kSumTolerance, half() ? kBFloat16Rounding : 0);
}

TEST_P(Interactions, ASampleHasTheSameBitsAloneAndTwice) {
  const std::vector<float> out = Forward(0, shape_.samples), d_x = Backward(0, shape_.samples);
  ExpectSameBits(Forward(0, shape_.samples), out);
  ExpectSameBits(Backward(0, shape_.samples), d_x);
  for (const int64_t s : {int64_t{0}, shape_.samples - 1}) {
    const auto of_sample = [&](const std::vector<float>& all, int64_t width) {
      return std::vector<float>(all.begin() + s * width, all.begin() + (s + 1) * width);
    };
    ExpectSameBits(Forward(s, 1), of_sample(out, shape_.out_stride));
    ExpectSameBits(Backward(s, 1), of_sample(d_x, features()));
  }
}

// Strides that are and are not multiples of 8; more samples than warps; 32 and 33 vectors; so many
// or so long ones that they pass through shared memory in parts.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Interactions,
    ::testing::Combine(
        kBothPrecisions,
        ::testing::Values(InteractionCase{37, 27, 128, 1}, InteractionCase{2700, 27, 16, 1},
                          InteractionCase{5, 27, 128, 0}, InteractionCase{3, 27, 128, 601},
                          InteractionCase{13, 2, 16, 7}, InteractionCase{13, 9, 64, 4},
                          InteractionCase{9, 9, 48, 4}, InteractionCase{9, 16, 80, 0},
                          InteractionCase{7, 32, 256, 0}, InteractionCase{3, 33, 64, 0},
                          InteractionCase{5, 40, 128, 4}, InteractionCase{5, 27, 8, 1},
                          InteractionCase{5, 1, 32, 0}, InteractionCase{5, 4, 24, 2},
                          InteractionCase{2, 200, 64, 4}, InteractionCase{2, 40, 1024, 4})));

}  // namespace
}  // namespace renzan::cuda
