#include "renzan/cuda/load.h"

#include "renzan/base/build_id.h"
#include "renzan/base/plugin.h"
#include "renzan/cuda/plugin.h"

namespace renzan {
namespace {

constexpr Plugin kPlugin = {
    .file = "librenzan_cuda.so",
    .build = "renzan_cuda_build",
    .code = ErrorCode::kConfig,
    .what = "the library for training on GPUs",
    .advice =
        "build it with `scripts/build release renzan_cuda_plugin` where nvcc is "
        "installed, and install CUDA's libraries (libcublasLt); or use "
        "device: cpu"};

void* Library() {
  static void* const handle = LoadPlugin(kPlugin, PathOfPlugin(kPlugin), BuildId());
  return handle;
}

template <class Function>
Function* FunctionOf(const char* name) {
  return reinterpret_cast<Function*>(FunctionOfPlugin(Library(), name));
}

}  // namespace

int CountDevices() {
  return FunctionOf<decltype(renzan_cuda_count_devices)>("renzan_cuda_count_devices")();
}

DeviceFacts FactsOfDevice(int device) {
  DeviceFacts facts;
  FunctionOf<decltype(renzan_cuda_facts)>("renzan_cuda_facts")(device, &facts);
  return facts;
}

std::unique_ptr<DeviceModel> MakeDeviceModel(const DeviceModelOptions& options) {
  return std::unique_ptr<DeviceModel>(
      FunctionOf<decltype(renzan_cuda_make_model)>("renzan_cuda_make_model")(&options));
}

}  // namespace renzan
