#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "renzan/nn/dropout.h"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {

// Dropout::Apply for y [rows, stride] of `precision`; the first `units` values of each row are
// activations. Row r is sample first_sample + r of the global batch. `step` is in device memory.
void ApplyDropout(const Dropout& dropout, const int64_t* step, int64_t first_sample, int64_t rows,
                  int64_t units, int64_t stride, Precision precision, void* y, cudaStream_t stream);

}  // namespace renzan::cuda
