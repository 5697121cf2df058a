#pragma once

// DLRM's dot interaction on the device (renzan/model/dot_interaction.h has the definition), for all
// samples of a process; sums in float32, in a fixed order that does not depend on `samples`.
// Launches only; pointers are to device memory.

#include <cuda_runtime.h>

#include <cstdint>

#include "renzan/tensor/precision.h"

namespace renzan::cuda {

struct InteractionShape {
  int64_t samples = 0;
  int32_t vectors = 0;     // f
  int32_t dim = 0;         // a multiple of 8
  int64_t out_stride = 0;  // values from one row of `out` to the next; at least the width
  Precision precision = Precision::kFloat32;  // of all operands
};

// features [samples, f·dim] -> out [samples, out_stride]: vector 0, then <x_i, x_j> for i = 1.. and
// j = 0..i-1, then zeros up to the stride.
void InteractionForward(const InteractionShape& shape, const void* features, void* out,
                        cudaStream_t stream);

// d_out [samples, out_stride] -> d_features [samples, f·dim] (written, not added to).
void InteractionBackward(const InteractionShape& shape, const void* features, const void* d_out,
                         void* d_features, cudaStream_t stream);

}  // namespace renzan::cuda
