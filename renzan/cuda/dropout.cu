#include "renzan/base/philox.h"
#include "renzan/cuda/dropout.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int64_t kLanes = 16, kWords = 4;  // how nn/dropout.cc divides a group of 64 units

template <class T>
__global__ void __launch_bounds__(kStreamingThreads)
    DropoutKernel(uint64_t key, uint32_t threshold, float scale, const int64_t* step,
                  int64_t first_sample, int64_t rows, int64_t units, int64_t stride, T* y) {
  const uint64_t now = static_cast<uint64_t>(*step);
  const int64_t draws = (units + kLanes * kWords - 1) / (kLanes * kWords) * kLanes;  // per row
  ForAll(rows * draws, 1, [&](int64_t i) {
    const int64_t row = i / draws, draw = i % draws;
    const uint64_t sample = static_cast<uint64_t>(first_sample + row);
    const Philox::Block words = Philox::Draw(key, now, sample << 32 | static_cast<uint64_t>(draw));
    const int64_t unit = draw / kLanes * kLanes * kWords + draw % kLanes;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if (unit + w * kLanes >= units) break;
      T& value = y[row * stride + unit + w * kLanes];
      value = words[w] < threshold ? T(0.0f) : Rounded<T>(__fmul_rn(ToFloat(value), scale));
    }
  });
}

}  // namespace

void ApplyDropout(const Dropout& dropout, const int64_t* step, int64_t first_sample, int64_t rows,
                  int64_t units, int64_t stride, Precision precision, void* y,
                  cudaStream_t stream) {
  if (rows == 0 || units == 0) return;
  WithValueType(precision, [&](auto type) {
    using T = decltype(type);
    DropoutKernel<T><<<StreamingBlocks(rows * units / kWords), kStreamingThreads, 0, stream>>>(
        dropout.key(), dropout.threshold(), dropout.scale(), step, first_sample, rows, units,
        stride, static_cast<T*>(y));
  });
  CheckLaunch("dropout");
}

}  // namespace renzan::cuda
