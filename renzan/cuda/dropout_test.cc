#include "renzan/cuda/dropout.cuh"

#include "renzan/cuda/testing.h"

namespace renzan::cuda {
namespace {

using DeviceDropout = OnGpu;

TEST_F(DeviceDropout, DropsWhatTheProcessorDrops) {
  constexpr int64_t kRows = 37, kStep = (int64_t{1} << 33) + 5, kFirst = 70000;
  const Dropout dropout({.rate = 0.3, .seed = 11}, "top.0");
  const auto check = [&](int64_t units, Precision precision) {
    SCOPED_TRACE(::testing::Message() << units << " units");
    const int64_t stride = (units + 7) / 8 * 8;
    const std::vector<float> values = RandomFloats(static_cast<size_t>(kRows * stride), 3);
    const DeviceMemory y = CopiedToGpu(values, precision), step(sizeof(kStep));
    Check(cudaMemcpy(step.as<void>(), &kStep, sizeof(kStep), cudaMemcpyHostToDevice), "test");
    const std::vector<float> before = CopiedFromGpu(y, precision);
    BlockedMatrix expected(kRows, units, precision);
    for (int64_t r = 0; r < kRows; ++r) expected.SetRow(r, 0, before.data() + r * stride, units);
    dropout.Apply({.step = kStep, .first_sample = kFirst}, &expected);
    ApplyDropout(dropout, step.as<int64_t>(), kFirst, kRows, units, stride, precision, y.as<void>(),
                 nullptr);
    const std::vector<float> after = CopiedFromGpu(y, precision);
    int64_t dropped = 0;
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t u = 0; u < stride; ++u) {
        const float value = after[static_cast<size_t>(r * stride + u)];
        ASSERT_EQ(value,
                  u < units ? expected.at(r, u) : before[static_cast<size_t>(r * stride + u)])
            << r << " " << u;
        dropped += u < units && value == 0;
      }
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(kRows * units), 0.3, 0.15);
  };
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16})
    for (const int64_t units : {8, 16, 20, 64, 65, 200, 1024}) check(units, precision);
}

}  // namespace
}  // namespace renzan::cuda
