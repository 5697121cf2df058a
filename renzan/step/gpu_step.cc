#include "renzan/step/gpu_step.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"

namespace renzan {

GpuStep::GpuStep(ModelState& state, std::unique_ptr<DeviceEngine> device)
    : Step(state),
      device_(std::move(device)),
      logits_(static_cast<size_t>(slice_end() - slice_begin())) {}

// The GPU always has a next step: the host finishes the previous one and prepares the following one
// meanwhile.
void GpuStep::Run(const StepInput& input) {
  const TraceSpan span("step");
  CHECK(input.slice.size == slice_end() - slice_begin());
  {
    const TraceSpan exchange("input_dist");
    batches_.Begin(IdsOf(input.slice));
  }
  Launch(input);
  FinishLastStep(input);
  ExchangeNextIds(input.next);
}

void GpuStep::Launch(const StepInput& input) {
  const TraceSpan span("launch step");
  const double factor = learning_rate_factor(input);
  const LearningRates& rates = spec().learning_rates;
  device_->BeginStep(
      input.slice, batches_.current(),
      {.sparse_learning_rate = factor * rates.sparse,
       .dense_learning_rate = factor * rates.dense,
       .step = input.step,
       .dense_optimizer_steps = state_.dense_optimizer().earlier_steps() + input.step});
}

void GpuStep::FinishLastStep(const StepInput& input) {
  const TraceSpan span("wait for the GPU");
  Await();
  unfinished_ = {input.step, input.metrics};
  const std::span<const float> labels = LabelsOf(input.slice);
  labels_.assign(labels.begin(), labels.end());
}

void GpuStep::Await() {
  if (!unfinished_) return;
  const Unfinished last = *std::exchange(unfinished_, std::nullopt);
  const DeviceModel::Result result = device_->FinishInto(logits_);
  const int64_t non_finite_before = NumNonFinite(last.metrics);
  AddMetrics(logits_, labels_, last.metrics);
  Observe(last.step, last.metrics, non_finite_before, result.dense_finite, result.tables_finite);
}

void GpuStep::ExchangeNextIds(const Batch* next) {
  const TraceSpan span("input_dist");
  if (next != nullptr) batches_.BeginNext(IdsOf(*next));
  batches_.ContinueNext();
  batches_.EndNext();
  if (next != nullptr) device_->Stage(*next, *batches_.next());
}

ModelState& GpuStep::Updated() {
  Await();
  device_->UpdateHost();
  return state_;
}

void GpuStep::Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
                      std::span<float> logits) {
  const TraceSpan span("predict");
  CHECK(slice.size == slice_end() - slice_begin() && std::ssize(logits) == slice.size);
  Await();
  batches->Begin(IdsOf(slice));
  device_->BeginPredict(slice, batches->current());
  if (next != nullptr) batches->BeginNext(IdsOf(*next));
  batches->ContinueNext();
  device_->FinishInto(logits);
  batches->EndNext();
}

}  // namespace renzan
