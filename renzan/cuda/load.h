#pragma once

// The GPU, if this machine has one that can be used.

#include <memory>
#include <string>

#include "renzan/cuda/device_model.h"
#include "renzan/model/loss.h"

namespace renzan {

// The number of GPUs. Throws kConfig, with the reason, if librenzan_cuda.so or the libraries of
// CUDA are not installed, or there is no driver or no GPU; kUnavailable if no GPU can be used now.
int CountDevices();

// Throws what CountDevices() does.
DeviceFacts FactsOfDevice(int device);

// Throws kConfig for a model, a loss or an optimizer of the tables that GPUs cannot compute.
// `one_learning_rate`: whether all tables have the same.
void CheckDeviceSupports(const ModelOptions& model, const LossOptions& loss,
                         const SparseOptimizerOptions& sparse, bool one_learning_rate);

// How many bytes of the device's memory the model needs.
struct DeviceBytes {
  int64_t tables = 0, rest = 0;  // `tables`: including memory for their lookups and updates
  int64_t pooled = 0;            // needed instead of `tables` if those are in the host's memory
};
DeviceBytes EstimateDeviceBytes(const DeviceModelOptions& options);

// For a model that CheckDeviceSupports() accepts. Throws what CountDevices() does, and kOsError if
// the memory does not suffice.
std::unique_ptr<DeviceModel> MakeDeviceModel(const DeviceModelOptions& options);

}  // namespace renzan
