// HybridModel on a GPU.

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

// While the GPU computes, the next batch's ids are prepared and copied.
std::vector<HybridModel::Stage> HybridModel::MakeDeviceStages() const {
  return {{"input_dist", &HybridModel::BeginIds},
          {"launch step", &HybridModel::BeginStepOnDevice},
          {"input_dist", &HybridModel::ExchangeNextIds},
          {"wait for the GPU", &HybridModel::EndStepOnDevice}};
}

void HybridModel::BeginStepOnDevice(StepState& state) {
  device_->BeginStep(
      state.slice, batches_->current(),
      {.sparse_learning_rate = state.learning_rate_factor * config_.optimizer.sparse.learning_rate,
       .dense_learning_rate = state.learning_rate_factor * config_.optimizer.dense.learning_rate,
       .step = state.step});
}

void HybridModel::ExchangeNextIds(StepState& state) {
  batches_->BeginNext(state.next);
  batches_->ContinueNext();
  batches_->EndNext();
  if (state.next != nullptr) device_->Stage(*state.next, *batches_->next());
}

void HybridModel::EndStepOnDevice(StepState& state) {
  const DeviceModel::Result result = device_->FinishInto(logits_);
  state.dense_finite = result.dense_finite;
  state.tables_finite = result.tables_finite;
  AddMetrics(state);
}

void HybridModel::AddMetrics(const StepState& state) {
  const TraceSpan span("metrics");
  pool_.ParallelRanges(logits_.size(), [&](int thread, size_t begin, size_t end) {
    state.metrics[static_cast<size_t>(thread)].Add(
        std::span(logits_).subspan(begin, end - begin),
        std::span(state.slice.label).subspan(begin, end - begin));
  });
}

void HybridModel::ForwardAndBackwardOnDevice(StepState& state) {
  embeddings_->BeginGradients(batches_->current(), state.measure_gradients);
  ReadPooledForDevice(batches_->current());
  device_->BeginForwardAndBackward(state.slice);
  pool_.ParallelTasks(embeddings_->shards().size(), [&](int thread, size_t held) {
    embeddings_->SortLookups(held, thread, &batches_->current());
  });
  device_->FinishInto(logits_);
  device_->ReadGradients(dense_gradients_->leaves());
  WriteGradientsOfDevice();
  AddMetrics(state);
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
