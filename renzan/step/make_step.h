#pragma once

// Which kind of step a run has.

#include <memory>

#include "renzan/comm/communicator.h"
#include "renzan/step/step.h"

namespace renzan {

// On this process's CPUs (CpuStep), or with device: cuda the dense part (GpuDenseStep) or whole
// steps (GpuStep) on a GPU. Throws kConfig or kOsError where a GPU cannot have what it has to.
// `state` must outlive it.
std::unique_ptr<Step> MakeStep(ModelState& state, Communicator& comm);

}  // namespace renzan
