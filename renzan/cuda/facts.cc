#include "renzan/cuda/facts.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "renzan/base/error.h"
#include "renzan/cuda/memory.cuh"

namespace renzan::cuda {
namespace {

std::string RuntimeVersion(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

int CountDevices() {
  int count = 0;
  Check(cudaGetDeviceCount(&count), "looking for GPUs");
  if (count == 0) Check(cudaErrorNoDevice, "looking for GPUs");
  return count;
}

DeviceFacts FactsOf(int device) {
  Check(cudaSetDevice(device), "choosing a GPU");
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, device), "asking the GPU");
  if (properties.major < 8)
    Fail(ErrorCode::kConfig,
         "{} has compute capability {}.{}, but 8.0 (A100) or newer is needed: use device: cpu",
         properties.name, properties.major, properties.minor);
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking the GPU for its memory");
  int driver = 0, runtime = 0;
  Check(cudaDriverGetVersion(&driver), "asking the driver");
  Check(cudaRuntimeGetVersion(&runtime), "asking CUDA");
  const size_t products = cublasLtGetVersion();
  return {
      .name = properties.name,
      .gpu_class = fmt::format("sm_{}{}x{}", properties.major, properties.minor,
                               properties.multiProcessorCount),
      .total_bytes = static_cast<int64_t>(total),
      .free_bytes = static_cast<int64_t>(free),
      .driver = RuntimeVersion(driver),
      .runtime = RuntimeVersion(runtime),
      .products = fmt::format("{}.{}.{}", products / 10000, products / 100 % 100, products % 100)};
}

}  // namespace renzan::cuda
