#pragma once

// A step that a GPU computes as a whole, with the tables and both optimizers in its memory, for a
// single worker. Each step is launched before the last one is finished, so that the GPU never waits
// for what the host does with predictions and batches.

#include <memory>
#include <optional>
#include <vector>

#include "renzan/step/device_engine.h"
#include "renzan/step/step.h"

namespace renzan {

class GpuStep final : public Step {
 public:
  // `device` belongs to the same state, and has its tables.
  GpuStep(ModelState& state, std::unique_ptr<DeviceEngine> device);

  void Run(const StepInput& input) override;
  void Await() override;
  void Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
               std::span<float> logits) override;
  using Step::Predict;
  // Copies updated rows and the dense part back from the GPU.
  ModelState& Updated() override;

 private:
  // A step that the GPU may still be computing.
  struct Unfinished {
    int64_t step;
    std::span<OutputMetrics> metrics;
  };
  void Launch(const StepInput& input);
  void FinishLastStep(const StepInput& input);
  void ExchangeNextIds(const Batch* next);

  std::unique_ptr<DeviceEngine> device_;
  std::optional<Unfinished> unfinished_;
  std::vector<float> labels_, logits_;  // of own samples, for the unfinished step
};

}  // namespace renzan
