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

// Layers as wide as models have them, whose masks the products apply.
TEST_P(Products, MasksAreThoseOfTheReluForEachVirtualWorkerAlone) {
  constexpr int64_t kWidth = 256, kMany = 128;
  const Precision precision = GetParam();
  const size_t size = kVirtualWorkers * kMany * kWidth;
  const std::vector<float> x = RandomFloats(size, 1), dy = RandomFloats(size, 4);
  const std::vector<float> w = RandomFloats(kWidth * kWidth, 2), bias = RandomFloats(kWidth, 3);
  struct Outputs {
    std::vector<float> y, masked, plain;
  };
  const auto run = [&](int first, int n) -> std::optional<Outputs> {
    const ProductLibrary library(
        {.precision = precision, .virtual_workers = kVirtualWorkers, .own_virtual_workers = n});
    const ProductShape::Operand rows = {kMany, kWidth, kWidth, kMany * kWidth};
    const ProductShape::Operand weights = {.rows = kWidth, .columns = kWidth, .stride = kWidth};
    ProductShape::Operand transposed = weights;
    transposed.transposed = true;
    using Epilogue = ProductShape::Epilogue;
    const auto forward = Product::Find(
        library, {.a = rows, .b = transposed, .out = rows, .epilogue = Epilogue::kBiasReluMask});
    const auto backward =
        Product::Find(library, {.a = rows, .b = weights, .out = rows, .epilogue = Epilogue::kMask});
    if (!forward || !backward) return std::nullopt;
    const Product plain(library, {.a = rows, .b = weights, .out = rows});
    const size_t begin = static_cast<size_t>(first) * kMany * kWidth;
    const size_t own = static_cast<size_t>(n) * kMany * kWidth;
    const DeviceMemory in = CopiedToGpu(std::span(x).subspan(begin, own), precision);
    const DeviceMemory d = CopiedToGpu(std::span(dy).subspan(begin, own), precision);
    const DeviceMemory matrix = CopiedToGpu(w, precision), b = CopiedToGpu(bias, precision);
    const DeviceMemory y(in.bytes()), dx(in.bytes()), unmasked(in.bytes());
    const DeviceMemory mask(static_cast<size_t>(ProductShape::MaskBytes(n * kMany, kWidth)));
    const Stream stream;
    forward->Run(in.as<void>(), matrix.as<void>(), b.as<void>(), y.as<void>(), stream,
                 mask.as<void>());
    backward->Run(d.as<void>(), matrix.as<void>(), nullptr, dx.as<void>(), stream, mask.as<void>());
    plain.Run(d.as<void>(), matrix.as<void>(), nullptr, unmasked.as<void>(), stream);
    stream.Synchronize();
    return Outputs{CopiedFromGpu(y, precision), CopiedFromGpu(dx, precision),
                   CopiedFromGpu(unmasked, precision)};
  };
  const std::optional<Outputs> all = run(0, kVirtualWorkers);
  if (!all) GTEST_SKIP() << "this cuBLASLt has no masks for these shapes";
  for (size_t i = 0; i < size; ++i) {
    const float expected = all->y[i] > 0 ? all->plain[i] : 0;
    ASSERT_NEAR(all->masked[i], expected, precision == Precision::kBFloat16 ? 0.25 : 1e-4) << i;
  }
  for (int first = 0; first < kVirtualWorkers; ++first) {
    const std::optional<Outputs> alone = run(first, 1);
    ASSERT_TRUE(alone.has_value());
    const int64_t begin = first * kMany * kWidth;
    EXPECT_TRUE(std::equal(alone->y.begin(), alone->y.end(), all->y.begin() + begin));
    EXPECT_TRUE(
        std::equal(alone->masked.begin(), alone->masked.end(), all->masked.begin() + begin));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Products,
                         testing::Values(Precision::kFloat32, Precision::kBFloat16));

}  // namespace
}  // namespace renzan::cuda
