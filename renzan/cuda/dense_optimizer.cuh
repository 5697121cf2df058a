#pragma once

// The dense optimizer's step on the device: renzan/optim/optimizer_steps.h, bit for bit. Products
// and sums are rounded separately. Launches only; device pointers.

#include <cuda_runtime.h>

#include <cstdint>

#include "renzan/optim/dense_optimizer.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan::cuda {

struct DenseStep {
  float lr = 0, epsilon = 0;
  float kept = 1;    // w *= kept first, unless it is 1
  AdamFactors adam;  // if the optimizer is Adam
};

// `step` is in device memory, so that a captured launch can be given another one. state1 and state2
// are "adagrad", or "adam_m" and "adam_v"; null for states that the optimizer lacks. *finite
// becomes 0 if a parameter or its state is not finite afterwards.
void ApplyDenseOptimizer(DenseOptimizerType type, const DenseStep* step, int64_t n,
                         const float* gradient, float* state1, float* state2, float* parameters,
                         int32_t* finite, cudaStream_t stream);

}  // namespace renzan::cuda
