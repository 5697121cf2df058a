#include "renzan/cuda/products.h"

#include <algorithm>
#include <cmath>

#include "renzan/cuda/testing.h"

namespace renzan::cuda {
namespace {

class Products : public OnGpu, public testing::WithParamInterface<Precision> {};

constexpr int kVirtualWorkers = 4;
constexpr int64_t kRows = 48, kIn = 40, kOut = 24;

float Rounded(float value, Precision precision) {
  return precision == Precision::kBFloat16 ? FromBFloat16(ToBFloat16(value)) : value;
}

// y = relu(x · wᵀ + bias) of the virtual workers [first, first + n).
std::vector<float> Forward(Precision precision, std::span<const float> x, std::span<const float> w,
                           std::span<const float> bias, int first, int n) {
  const ProductLibrary library(
      {.precision = precision, .virtual_workers = kVirtualWorkers, .own_virtual_workers = n});
  const Product product(library,
                        {.a = {kRows, kIn, kIn, kRows * kIn},
                         .b = {.rows = kOut, .columns = kIn, .stride = kIn, .transposed = true},
                         .out = {kRows, kOut, kOut, kRows * kOut},
                         .epilogue = ProductShape::Epilogue::kBiasRelu});
  const size_t own = static_cast<size_t>(n * kRows);
  const DeviceMemory on_device =
      CopiedToGpu(x.subspan(static_cast<size_t>(first * kRows * kIn), own * kIn), precision);
  const DeviceMemory weights = CopiedToGpu(w, precision), biases = CopiedToGpu(bias, precision);
  const DeviceMemory out = CopiedToGpu(std::vector<float>(own * kOut, NAN), precision);
  const Stream stream;
  product.Run(on_device.as<void>(), weights.as<void>(), biases.as<void>(), out.as<void>(), stream);
  stream.Synchronize();
  return CopiedFromGpu(out, precision);
}

TEST_P(Products, AreExactUpToRoundingAndTheSameForEachVirtualWorkerAlone) {
  const Precision precision = GetParam();
  const std::vector<float> x = RandomFloats(kVirtualWorkers * kRows * kIn, 1);
  const std::vector<float> w = RandomFloats(kOut * kIn, 2), bias = RandomFloats(kOut, 3);
  const std::vector<float> all = Forward(precision, x, w, bias, 0, kVirtualWorkers);
  const double tolerance = precision == Precision::kBFloat16 ? 0.02 : 1e-5;
  for (int64_t r = 0; r < kVirtualWorkers * kRows; ++r)
    for (int64_t c = 0; c < kOut; ++c) {
      double sum = Rounded(bias[static_cast<size_t>(c)], precision);
      for (int64_t k = 0; k < kIn; ++k)
        sum += double{Rounded(x[static_cast<size_t>(r * kIn + k)], precision)} *
               Rounded(w[static_cast<size_t>(c * kIn + k)], precision);
      ASSERT_NEAR(all[static_cast<size_t>(r * kOut + c)], std::max(0.0, sum), tolerance);
    }
  for (int first = 0; first < kVirtualWorkers; ++first) {
    const std::vector<float> alone = Forward(precision, x, w, bias, first, 1);
    const auto begin = all.begin() + first * kRows * kOut;
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), begin)) << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Products,
                         testing::Values(Precision::kFloat32, Precision::kBFloat16));

}  // namespace
}  // namespace renzan::cuda
