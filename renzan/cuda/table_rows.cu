#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/table_rows.cuh"

namespace renzan::cuda {
namespace {

__global__ void GatherTableRowsKernel(const float* __restrict__ values, int64_t width,
                                      const int32_t* __restrict__ rows, int64_t n,
                                      float* __restrict__ out) {
  const int64_t stride = int64_t{blockDim.x} * gridDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n * width; i += stride)
    out[i] = values[rows[i / width] * width + i % width];
}

}  // namespace

void GatherTableRows(const float* values, int64_t width, const int32_t* rows, int64_t n, float* out,
                     cudaStream_t stream) {
  if (n == 0 || width == 0) return;
  constexpr int kThreads = 256, kMostBlocks = 2048;
  const int64_t blocks = (n * width + kThreads - 1) / kThreads;
  GatherTableRowsKernel<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                          kThreads, 0, stream>>>(values, width, rows, n, out);
  CheckLaunch("gathering rows");
}

}  // namespace renzan::cuda
