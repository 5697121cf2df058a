#pragma once

// A step that is computed on a GPU as a whole, with the tables and both optimizers in its memory,
// which one worker can have. It is launched before the last one is finished, so that the GPU never
// waits for what the host does with predictions and batches.

#include <memory>
#include <optional>
#include <vector>

#include "renzan/step/device_engine.h"
#include "renzan/step/step.h"

namespace renzan {

class GpuStep final : public Step {
 public:
  // `device`: of the same state, with its tables.
  GpuStep(ModelState& state, std::unique_ptr<DeviceEngine> device);

  void Run(const StepInput& input) override;
  void Await() override;
  void Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
               std::span<float> logits) override;
  using Step::Predict;
  // Rows that were updated, and the dense part, return from the GPU.
  ModelState& Updated() override;

 private:
  // A step that the GPU may still compute.
  struct Unfinished {
    int64_t step;
    std::span<BinaryMetrics> metrics;
  };
  void Launch(const StepInput& input);
  void FinishLastStep(const StepInput& input);
  void ExchangeNextIds(const Batch* next);

  std::unique_ptr<DeviceEngine> device_;
  std::optional<Unfinished> unfinished_;
  std::vector<float> labels_, logits_;  // of own samples, of that step
};

}  // namespace renzan
