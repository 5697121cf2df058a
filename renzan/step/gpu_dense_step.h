#pragma once

// A step that computes its dense part on a GPU: pooled rows go there, and their gradients and those
// of each virtual worker's dense parameters come back.

#include <memory>
#include <vector>

#include "renzan/step/device_engine.h"
#include "renzan/step/host_step.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class GpuDenseStep final : public HostStep {
 public:
  // `device` belongs to the same state, and has no tables.
  GpuDenseStep(ModelState& state, Communicator& comm, std::unique_ptr<DeviceEngine> device);

 private:
  void Pack() override {}
  BackwardResult ForwardAndBackward(const StepInput& input, const PooledRows& pooled) override;
  void Forward(const Batch& slice, const PooledRows& pooled, std::span<float> logits) override;

  // Move pooled rows, and their gradients, between the embeddings and the GPU.
  void ReadPooled(const ExchangedIds& ids);
  void WriteGradients(const ExchangedIds& ids);

  std::unique_ptr<DeviceEngine> device_;
  std::vector<BlockedMatrix> rows_;  // per thread: a virtual worker's features, or their gradients
  std::vector<float> logits_;        // of own samples
};

}  // namespace renzan
