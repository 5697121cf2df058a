#pragma once

#include "renzan/cuda/device_model.h"

namespace renzan::cuda {

// Throws what Check() does.
int CountDevices();
DeviceFacts FactsOf(int device);

}  // namespace renzan::cuda
