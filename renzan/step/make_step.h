#pragma once

// Which kind of step a run has.

#include <memory>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/run_spec/item_inputs.h"
#include "renzan/step/step.h"

namespace renzan {

// CpuStep on this process's CPUs; with device: cuda, GpuDenseStep (the dense part on a GPU) or
// GpuStep (whole steps on a GPU). Throws kConfig or kOsError if the GPU cannot hold what it must.
// `state` must outlive the result. `counts`: for ItemInputs; predictions need none.
std::unique_ptr<Step> MakeStep(ModelState& state, Communicator& comm,
                               std::vector<IdCounts> counts = {});

}  // namespace renzan
