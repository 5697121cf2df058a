#include "renzan/step/gpu_dense_step.h"

#include <utility>

#include "renzan/base/trace.h"

namespace renzan {

GpuDenseStep::GpuDenseStep(ModelState& state, Communicator& comm,
                           std::unique_ptr<DeviceEngine> device)
    : HostStep(state, comm),
      device_(std::move(device)),
      rows_(static_cast<size_t>(state.pool().num_threads())),
      logits_(static_cast<size_t>(slice_end() - slice_begin())) {
  for (BlockedMatrix& rows : rows_)
    rows.Reshape(spec().numerics.samples(), state.model().features_columns(),
                 spec().model.precision);
}

BackwardResult GpuDenseStep::ForwardAndBackward(const StepInput& input, const PooledRows& pooled) {
  const TraceSpan span("forward and backward");
  PreparedBatch& batch = pooled.ids.batch;
  embeddings().BeginGradients(batch, input.measure_gradients);
  ReadPooled(pooled.ids);
  device_->BeginForwardAndBackward(input.slice, input.step);
  state_.pool().ParallelTasks(embeddings().shards().size(), [&](int thread, size_t held) {
    embeddings().SortLookups(held, thread, &batch);
  });
  device_->FinishInto(logits_);
  device_->ReadGradients(dense_gradients_.leaves());
  WriteGradients(pooled.ids);
  AddMetrics(logits_, LabelsOf(input.slice), input.metrics);
  return {.pooled = {pooled.ids}, .dense = {}};
}

void GpuDenseStep::ReadPooled(const ExchangedIds& ids) {
  const TraceSpan span("read inputs");
  const int64_t columns = device_->pooled_columns(), first = state_.model().first_pooled();
  const int64_t n = spec().numerics.samples();
  state_.pool().ParallelTasks(num_virtual_workers(), [&](int thread, size_t index) {
    BlockedMatrix& features = rows_[static_cast<size_t>(thread)];
    embeddings().ReadPooled(ids.batch, first_virtual_worker() + static_cast<int>(index),
                            lookups_.places, {&features, 1});
    float* to = device_->pooled().data() + static_cast<int64_t>(index) * n * columns;
    for (int64_t i = 0; i < n; ++i, to += columns) features.GetRow(i, first, to, columns);
  });
}

void GpuDenseStep::WriteGradients(const ExchangedIds& ids) {
  const TraceSpan span("write pooled gradients");
  const int64_t columns = device_->pooled_columns(), first = state_.model().first_pooled();
  const int64_t n = spec().numerics.samples();
  state_.pool().ParallelTasks(num_virtual_workers(), [&](int thread, size_t index) {
    BlockedMatrix& gradients = rows_[static_cast<size_t>(thread)];
    const float* from = device_->pooled().data() + static_cast<int64_t>(index) * n * columns;
    for (int64_t i = 0; i < n; ++i, from += columns) gradients.SetRow(i, first, from, columns);
    embeddings().WritePooledGradient(ids.batch, ids.own,
                                     first_virtual_worker() + static_cast<int>(index),
                                     lookups_.places, {&gradients, 1});
  });
}

void GpuDenseStep::Forward(const Batch& slice, const PooledRows& pooled, std::span<float> logits) {
  ReadPooled(pooled.ids);
  device_->BeginPredict(slice);
  device_->FinishInto(logits);
}

}  // namespace renzan
