// HybridModel on a GPU.

#include <algorithm>
#include <utility>

#include "renzan/base/trace.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

// The GPU always has the next step to go on with: what the host does for the one before and for the
// one after takes place meanwhile.
std::vector<HybridModel::Stage> HybridModel::MakeDeviceStages() const {
  return {{"input_dist", &HybridModel::BeginIds},
          {"launch step", &HybridModel::BeginStepOnDevice},
          {"wait for the GPU", &HybridModel::FinishLastStep},
          {"input_dist", &HybridModel::ExchangeNextIds}};
}

void HybridModel::BeginStepOnDevice(StepState& state) {
  device_->BeginStep(
      state.slice, batches_->current(),
      {.sparse_learning_rate = state.learning_rate_factor * config_.optimizer.sparse.learning_rate,
       .dense_learning_rate = state.learning_rate_factor * config_.optimizer.dense.learning_rate,
       .step = state.step});
}

void HybridModel::FinishLastStep(StepState& state) {
  FinishStep();
  unfinished_ = {state.step, state.metrics};
  labels_.assign(state.slice.label.begin(), state.slice.label.end());
}

void HybridModel::FinishStep() {
  if (!unfinished_) return;
  const StepOnDevice last = *std::exchange(unfinished_, std::nullopt);
  const DeviceModel::Result result = device_->FinishInto(logits_);
  const int64_t non_finite_before = NumNonFinite(last.metrics);
  AddMetrics(labels_, last.metrics);
  Observe(last.step, last.metrics, non_finite_before, result.dense_finite, result.tables_finite);
}

void HybridModel::ExchangeNextIds(StepState& state) {
  batches_->BeginNext(state.next);
  batches_->ContinueNext();
  batches_->EndNext();
  if (state.next != nullptr) device_->Stage(*state.next, *batches_->next());
}

void HybridModel::AddMetrics(std::span<const float> labels, std::span<BinaryMetrics> metrics) {
  const TraceSpan span("metrics");
  pool_.ParallelRanges(logits_.size(), [&](int thread, size_t begin, size_t end) {
    metrics[static_cast<size_t>(thread)].Add(std::span(logits_).subspan(begin, end - begin),
                                             labels.subspan(begin, end - begin));
  });
}

void HybridModel::ForwardAndBackwardOnDevice(StepState& state) {
  embeddings_->BeginGradients(batches_->current(), state.measure_gradients);
  ReadPooledForDevice(batches_->current());
  device_->BeginForwardAndBackward(state.slice, state.step);
  pool_.ParallelTasks(embeddings_->shards().size(), [&](int thread, size_t held) {
    embeddings_->SortLookups(held, thread, &batches_->current());
  });
  device_->FinishInto(logits_);
  device_->ReadGradients(dense_gradients_->leaves());
  WriteGradientsOfDevice();
  AddMetrics(state.slice.label, state.metrics);
}

void HybridModel::ReadPooledForDevice(const PreparedBatch& batch) {
  const TraceSpan span("read inputs");
  const int64_t columns = device_->pooled_columns(), dim = model_->options().embedding_dim;
  pool_.ParallelTasks(static_cast<size_t>(virtual_workers_.size()), [&](int thread, size_t index) {
    BlockedMatrix& features = workspaces_[static_cast<size_t>(thread)]->features;
    embeddings_->ReadPooled(batch, virtual_workers_.begin + static_cast<int>(index), dim,
                            &features);
    float* to = device_->pooled().data() +
                static_cast<int64_t>(index) * samples_per_virtual_worker_ * columns;
    for (int64_t i = 0; i < samples_per_virtual_worker_; ++i, to += columns)
      features.GetRow(i, dim, to, columns);
  });
}

void HybridModel::WriteGradientsOfDevice() {
  const TraceSpan span("write pooled gradients");
  const int64_t columns = device_->pooled_columns(), dim = model_->options().embedding_dim;
  pool_.ParallelTasks(static_cast<size_t>(virtual_workers_.size()), [&](int thread, size_t index) {
    BlockedMatrix& gradients = workspaces_[static_cast<size_t>(thread)]->d_features;
    const float* from = device_->pooled().data() +
                        static_cast<int64_t>(index) * samples_per_virtual_worker_ * columns;
    for (int64_t i = 0; i < samples_per_virtual_worker_; ++i, from += columns)
      gradients.SetRow(i, dim, from, columns);
    embeddings_->WritePooledGradient(batches_->current(), batches_->current_ids(),
                                     virtual_workers_.begin + static_cast<int>(index), dim,
                                     gradients);
  });
}

void HybridModel::PredictOnDevice(const Batch& slice, const Batch* next, PreparedBatches* batches,
                                  std::span<float> logits) {
  FinishStep();
  if (StepsOnDevice()) {
    device_->BeginPredict(slice, batches->current());
    batches->BeginNext(next);
    batches->ContinueNext();
  } else {
    embeddings_->LookUp(batches->current());
    batches->BeginNext(next);
    embeddings_->ReceivePooled();
    batches->ContinueNext();
    ReadPooledForDevice(batches->current());
    device_->BeginPredict(slice);
  }
  device_->FinishInto(logits);
  batches->EndNext();
}

}  // namespace renzan
