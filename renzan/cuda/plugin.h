#pragma once

// The functions of librenzan_cuda.so. It is of the same build as its host, so that C++ objects and
// exceptions may pass between them.

#include "renzan/cuda/load.h"

extern "C" {
int renzan_cuda_count_devices();
void renzan_cuda_facts(int device, renzan::DeviceFacts* facts);
renzan::DeviceModel* renzan_cuda_make_model(const renzan::DeviceModelOptions* options);
}
