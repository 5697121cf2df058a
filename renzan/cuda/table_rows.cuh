#pragma once

// Gathers rows of a table for the host. Launches only; pointers are to device memory.

#include <cuda_runtime.h>

#include <cstdint>

namespace renzan::cuda {

// out[i, d] = values[rows[i], d] for n rows of `width` floats.
void GatherTableRows(const float* values, int64_t width, const int32_t* rows, int64_t n, float* out,
                     cudaStream_t stream);

}  // namespace renzan::cuda
