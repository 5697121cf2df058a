#include "renzan/cuda/dense_optimizer.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

struct SgdOnDevice {
  static constexpr int kStates = 0;
  __device__ static float Step(const DenseStep& step, float g, float&, float&) {
    return step.lr * g;
  }
};

struct AdagradOnDevice {
  static constexpr int kStates = 1;
  __device__ static float Step(const DenseStep& step, float g, float& sum, float&) {
    sum = sum + g * g;
    return step.lr * g / (sqrtf(sum) + step.epsilon);
  }
};

struct AdamOnDevice {
  static constexpr int kStates = 2;
  __device__ static float Step(const DenseStep& step, float g, float& mean, float& square) {
    const AdamFactors& f = step.adam;
    mean = f.beta1 * mean + f.rest1 * g;
    square = f.beta2 * square + f.rest2 * (g * g);
    return f.lr * (mean * f.correct1) / (sqrtf(square * f.correct2) + f.epsilon);
  }
};

template <class Optimizer>
__global__ void __launch_bounds__(kStreamingThreads)
    DenseOptimizerKernel(const DenseStep* step_of_batch, int64_t n, bool aligned,
                         const float* gradient, float* state1, float* state2, float* parameters,
                         int32_t* finite) {
  const DenseStep step = *step_of_batch;
  bool all_finite = true;
  ForGroups<4>(n, aligned, [&](int64_t i, auto group) {
    float g[4], w[4], s1[4] = {}, s2[4] = {};
    LoadGroup(gradient + i, group, g);
    LoadGroup(parameters + i, group, w);
    if constexpr (Optimizer::kStates > 0) LoadGroup(state1 + i, group, s1);
    if constexpr (Optimizer::kStates > 1) LoadGroup(state2 + i, group, s2);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (step.kept != 1.0f) w[j] *= step.kept;
      w[j] -= Optimizer::Step(step, g[j], s1[j], s2[j]);
      all_finite &= isfinite(w[j]) && isfinite(s1[j]) && isfinite(s2[j]);
    }
    if constexpr (Optimizer::kStates > 0) StoreGroup(s1, group, state1 + i);
    if constexpr (Optimizer::kStates > 1) StoreGroup(s2, group, state2 + i);
    StoreGroup(w, group, parameters + i);
  });
  if (!all_finite) *finite = 0;  // all threads that write, write the same value
}

auto* DenseOptimizerKernelFor(DenseOptimizerType type) {
  switch (type) {
    case DenseOptimizerType::kSgd:
      return DenseOptimizerKernel<SgdOnDevice>;
    case DenseOptimizerType::kAdagrad:
      return DenseOptimizerKernel<AdagradOnDevice>;
    case DenseOptimizerType::kAdam:
      break;
  }
  return DenseOptimizerKernel<AdamOnDevice>;
}

}  // namespace

void ApplyDenseOptimizer(DenseOptimizerType type, const DenseStep* step, int64_t n,
                         const float* gradient, float* state1, float* state2, float* parameters,
                         int32_t* finite, cudaStream_t stream) {
  if (n == 0) return;
  auto* const kernel = DenseOptimizerKernelFor(type);
  kernel<<<StreamingBlocks(n, kStreamingThreads * 4), kStreamingThreads, 0, stream>>>(
      step, n, AreAlignedTo16Bytes(gradient, state1, state2, parameters), gradient, state1, state2,
      parameters, finite);
  CheckLaunch("the dense optimizer");
}

}  // namespace renzan::cuda
