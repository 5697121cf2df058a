#include "renzan/cuda/load.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/cuda/plugin.h"

namespace renzan {
namespace {

constexpr const char* kFile = "librenzan_cuda.so";

// Beside the program, or in ../lib.
std::string PluginPath() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path beside = here / kFile;
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside : here.parent_path() / "lib" / kFile;
}

void* Plugin() {
  static void* const handle = dlopen(PluginPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  static const std::string why = dlerror();
  Fail(
      ErrorCode::kConfig,
      "GPUs cannot be used: {}: install CUDA's libraries (libcublasLt), or build Renzan where nvcc "
      "is installed; or use device: cpu",
      why);
}

template <class Function>
Function* FunctionOf(const char* name) {
  return reinterpret_cast<Function*>(dlsym(Plugin(), name));
}

// The same, after checking that the library is of this build.
template <class Function>
Function* CheckedFunctionOf(const char* name) {
  const auto build = FunctionOf<decltype(renzan_cuda_build)>("renzan_cuda_build");
  const std::string theirs = build == nullptr ? "unknown" : build();
  if (theirs != BuildId())
    Fail(ErrorCode::kConfig,
         "{} is of another build than this program ({}, not {}): build and install both from the "
         "same sources, or use device: cpu",
         PluginPath(), theirs, BuildId());
  Function* const found = FunctionOf<Function>(name);
  CHECK_MSG(found != nullptr, "{} lacks {}", PluginPath(), name);
  return found;
}

}  // namespace

int CountDevices() {
  return CheckedFunctionOf<decltype(renzan_cuda_count_devices)>("renzan_cuda_count_devices")();
}

DeviceFacts FactsOfDevice(int device) {
  DeviceFacts facts;
  CheckedFunctionOf<decltype(renzan_cuda_facts)>("renzan_cuda_facts")(device, &facts);
  return facts;
}

std::unique_ptr<DeviceModel> MakeDeviceModel(const DeviceModelOptions& options) {
  return std::unique_ptr<DeviceModel>(
      CheckedFunctionOf<decltype(renzan_cuda_make_model)>("renzan_cuda_make_model")(&options));
}

}  // namespace renzan
