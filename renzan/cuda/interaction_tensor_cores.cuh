#pragma once

// The dot interaction of bfloat16 on tensor cores, one warp per sample. For interaction.cu.

#include "renzan/cuda/interaction.cuh"

namespace renzan::cuda {

// Depends only on the shape of a sample, so that placement does not change the order of sums.
bool FitsTensorCores(const InteractionShape& shape);

void InteractionForwardOnTensorCores(const InteractionShape& shape, const void* features, void* out,
                                     cudaStream_t stream);
void InteractionBackwardOnTensorCores(const InteractionShape& shape, const void* features,
                                      const void* d_out, void* d_features, cudaStream_t stream);

}  // namespace renzan::cuda
