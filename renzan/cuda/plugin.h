#pragma once

// The functions of librenzan_cuda.so. It is of the same build as its host (DeviceInterface),
// so that C++ objects and exceptions may pass between them.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "renzan/cuda/load.h"

namespace renzan {

// Of what passes between the two. Another build mostly has another one, and is refused.
constexpr uint64_t DeviceInterface() {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a's
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001B3; };
  for (const char c : std::string_view(RENZAN_VERSION)) add(static_cast<unsigned char>(c));
  for (const size_t size :
       {sizeof(DeviceModelOptions), sizeof(DeviceTableOptions), sizeof(ModelOptions),
        sizeof(SparseOptimizerOptions), sizeof(DenseOptimizerOptions), sizeof(DeviceBatch),
        sizeof(DeviceStep), sizeof(DeviceFacts), sizeof(DeviceModel::Result)})
    add(size);
  return hash;
}

}  // namespace renzan

extern "C" {
uint64_t renzan_cuda_interface();
int renzan_cuda_count_devices();
void renzan_cuda_facts(int device, renzan::DeviceFacts* facts);
renzan::DeviceModel* renzan_cuda_make_model(const renzan::DeviceModelOptions* options);
}
