#pragma once

// For tests that need a GPU; they are skipped elsewhere.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/cuda/memory.cuh"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
};

// Uniform in [-1, 1); different for each seed.
inline std::vector<float> RandomFloats(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 2 * Philox::Uniform(Philox::Draw(seed, i)[0]) - 1;
  return values;
}

// Converted to `precision`, in device memory.
inline DeviceMemory CopiedToGpu(std::span<const float> values, Precision precision) {
  std::vector<uint16_t> halves;
  const void* from = values.data();
  size_t bytes = values.size_bytes();
  if (precision == Precision::kBFloat16) {
    for (const float value : values) halves.push_back(ToBFloat16(value));
    from = halves.data();
    bytes /= 2;
  }
  DeviceMemory memory(bytes);
  Check(cudaMemcpy(memory.as<void>(), from, bytes, cudaMemcpyHostToDevice), "test");
  return memory;
}

inline std::vector<float> CopiedFromGpu(const DeviceMemory& memory, Precision precision) {
  std::vector<std::byte> bytes(memory.bytes());
  Check(cudaDeviceSynchronize(), "test");
  Check(cudaMemcpy(bytes.data(), memory.as<void>(), bytes.size(), cudaMemcpyDeviceToHost), "test");
  const bool half = precision == Precision::kBFloat16;
  std::vector<float> values(bytes.size() / (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    if (half) {
      uint16_t bits;
      std::memcpy(&bits, &bytes[2 * i], 2);
      values[i] = FromBFloat16(bits);
    } else {
      std::memcpy(&values[i], &bytes[4 * i], 4);
    }
  }
  return values;
}

inline constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBFloat16};
inline const auto kBothPrecisions = ::testing::ValuesIn(kPrecisions);

// A few thousand random values again and again: cheap when there are millions.
inline std::vector<float> Floats(int64_t n, uint64_t seed) {
  constexpr size_t kPeriod = 4099;
  const std::vector<float> period = RandomFloats(kPeriod, seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = period[i % kPeriod];
  return values;
}

// So that zeros of either sign differ, and equal NaNs do not.
inline void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  size_t differences = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected[i])) continue;
    if (++differences <= 5)
      ADD_FAILURE() << "value " << i << " is " << got[i] << ", not " << expected[i];
  }
  EXPECT_EQ(differences, 0u);
}

// Sums of at most some hundred products of values below 1, and the rounding of the result.
inline constexpr double kSumTolerance = 3e-4, kBFloat16Rounding = 1.0 / 256;
inline void ExpectNear(const std::vector<float>& got, const std::vector<double>& expected,
                       double absolute, double relative) {
  ASSERT_EQ(got.size(), expected.size());
  size_t differences = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    // A NaN is not near.
    if (std::abs(got[i] - expected[i]) <= absolute + relative * std::abs(expected[i])) continue;
    if (++differences <= 5)
      ADD_FAILURE() << "value " << i << " is " << got[i] << ", not " << expected[i];
  }
  EXPECT_EQ(differences, 0u);
}

}  // namespace renzan::cuda
