#pragma once

// The functions of librenzan_cuda.so. The host refuses a library of another build, so that C++
// objects and exceptions may pass between them, and both compute the same bits.

#include "renzan/cuda/load.h"

extern "C" {
const char* renzan_cuda_build();  // BuildId(). The only one that any build may call.
int renzan_cuda_count_devices();
void renzan_cuda_facts(int device, renzan::DeviceFacts* facts);
renzan::DeviceModel* renzan_cuda_make_model(const renzan::DeviceModelOptions* options);
}
