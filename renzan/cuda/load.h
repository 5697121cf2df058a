#pragma once

// The GPU, if this machine has one that can be used.

#include <memory>
#include <string>

#include "renzan/cuda/device_model.h"
#include "renzan/model/loss.h"

namespace renzan {

// The number of GPUs. Throws kConfig, with the reason: librenzan_cuda.so or the libraries of CUDA
// are not installed, or there is no driver or no GPU; kUnavailable if none can be used now.
int CountDevices();

// Throws the same.
DeviceFacts FactsOfDevice(int device);

// Throws kConfig for a model that no GPU can compute here.
void CheckDeviceSupports(const ModelOptions& model, const LossOptions& loss);

// How many bytes of the device's memory the model needs.
struct DeviceBytes {
  int64_t tables = 0, rest = 0;  // `tables`: with what their lookups and updates need
  int64_t pooled = 0;            // instead of `tables` where those are in the host's memory
};
DeviceBytes EstimateDeviceBytes(const DeviceModelOptions& options);

// Of a model that CheckDeviceSupports accepts. Throws the same as CountDevices, and kOsError if the
// memory does not suffice.
std::unique_ptr<DeviceModel> MakeDeviceModel(const DeviceModelOptions& options);

}  // namespace renzan
