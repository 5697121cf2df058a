#pragma once

// The GPU, if this machine has one that can be used.

#include <memory>
#include <string>

#include "renzan/cuda/device_model.h"

namespace renzan {

// The number of GPUs. Throws kUnavailable, with the reason: librenzan_cuda.so or the libraries of
// CUDA are not installed, there is no driver, or none of the GPUs can be used.
int CountDevices();

// Throws kUnavailable.
DeviceFacts FactsOfDevice(int device);

// How many bytes of the device's memory the model needs, with and without its tables.
struct DeviceBytes {
  int64_t tables = 0, rest = 0;
};
DeviceBytes EstimateDeviceBytes(const DeviceModelOptions& options);

// Throws kUnavailable, kConfig for what a GPU does not support, and kOsError if the memory does not
// suffice.
std::unique_ptr<DeviceModel> MakeDeviceModel(const DeviceModelOptions& options);

}  // namespace renzan
