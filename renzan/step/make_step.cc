#include "renzan/step/make_step.h"

#include <utility>

#include "renzan/step/cpu_step.h"
#include "renzan/step/gpu_dense_step.h"
#include "renzan/step/gpu_step.h"

namespace renzan {

std::unique_ptr<Step> MakeStep(ModelState& state, Communicator& comm,
                               std::vector<IdCounts> counts) {
  if (!state.spec().numerics.on_gpu)
    return std::make_unique<CpuStep>(state, comm, std::move(counts));
  auto device = std::make_unique<DeviceEngine>(state, comm);
  if (device->has_tables()) return std::make_unique<GpuStep>(state, std::move(device));
  return std::make_unique<GpuDenseStep>(state, comm, std::move(device));
}

}  // namespace renzan
