#include "renzan/step/cpu_step.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/loss.h"

namespace renzan {

CpuStep::CpuStep(ModelState& state, Communicator& comm, std::vector<IdCounts> counts)
    : HostStep(state, comm),
      items_(state.model(), lookups_, std::move(counts)),
      packed_(state.model().layout(), state.parameters().span(), state.spec().model.precision) {
  for (int thread = 0; thread < state.pool().num_threads(); ++thread)
    workspaces_.push_back(state.model().MakeWorkspace(spec().numerics.samples()));
}

void CpuStep::Pack() {
  const TraceSpan span("pack parameters");
  if (packed_version_ == state_.version()) return;
  packed_.Pack(state_.pool());
  packed_version_ = state_.version();
}

BackwardResult CpuStep::ForwardAndBackward(const StepInput& input, const PooledRows& pooled) {
  const TraceSpan span("forward and backward");
  PreparedBatch& batch = pooled.ids.batch;
  CHECK(std::ssize(input.slice.weight) == (spec().loss.sample_weights ? input.slice.size : 0));
  embeddings().BeginGradients(batch, input.measure_gradients);
  const size_t virtual_workers = num_virtual_workers(), shards = embeddings().shards().size();
  // Threads that have finished their virtual workers sort lookups.
  state_.pool().ParallelTasks(virtual_workers + shards, [&](int thread, size_t task) {
    if (task < virtual_workers) {
      TrainVirtualWorker(input, pooled.ids, task, thread);
    } else {
      embeddings().SortLookups(task - virtual_workers, thread, &batch);
    }
  });
  return {.pooled = {pooled.ids}, .dense = {}};
}

void CpuStep::TrainVirtualWorker(const StepInput& input, const ExchangedIds& ids, size_t index,
                                 int thread) {
  const TraceSpan span("virtual worker");
  const Numerics& numerics = spec().numerics;
  const int virtual_worker = first_virtual_worker() + static_cast<int>(index);
  Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
  Load(input.slice, ids, index, &w);
  items_.Read(input.slice, static_cast<int64_t>(index) * numerics.samples(), numerics.samples(),
              &w);
  w.training = TrainingPosition{input.step, virtual_worker * numerics.samples()};
  {
    const TraceSpan forward("forward");
    state_.model().Forward(packed_, &w);
  }
  ComputeLosses(input, index, thread, &w);
  {
    const TraceSpan backward("backward");
    state_.model().Backward(packed_, &dense_gradients_.of(index), &w);
  }
  const TraceSpan pooled("write pooled gradients");
  embeddings().WritePooledGradient(ids.batch, ids.own, virtual_worker, lookups_.places,
                                   w.d_features);
}

void CpuStep::ComputeLosses(const StepInput& input, size_t index, int thread,
                            Model::Workspace* workspace) {
  const LossOptions& loss = spec().loss;
  const size_t n = static_cast<size_t>(spec().numerics.samples());
  std::span<const float> weights = input.slice.weight;
  if (loss.sample_weights) weights = weights.subspan(index * n, n);
  for (size_t t = 0; t < loss.tasks.size(); ++t) {
    const Task& task = loss.tasks[t];
    const auto logits = workspace->logits.span().subspan(task.output * n, n);
    const auto labels = input.slice.labels(task.label_column).subspan(index * n, n);
    MetricsOf(input, t, thread).AddBy(task.loss, logits, labels);
    const auto gradient =
        task.loss == Loss::kSquaredError ? SquaredErrorGradient : BinaryCrossEntropyGradient;
    gradient(loss, logits, labels, weights, spec().numerics.batch,
             workspace->d_logits.span().subspan(task.output * n, n), task.weight);
  }
}

void CpuStep::Load(const Batch& slice, const ExchangedIds& ids, size_t index,
                   Model::Workspace* workspace) {
  const TraceSpan span("read inputs");
  const int64_t num_dense = spec().model.num_dense, n = spec().numerics.samples();
  const float* dense = slice.dense.data() + static_cast<int64_t>(index) * n * num_dense;
  for (int64_t i = 0; i < n; ++i) workspace->dense.SetRow(i, 0, dense + i * num_dense, num_dense);
  embeddings().ReadPooled(ids.batch, first_virtual_worker() + static_cast<int>(index),
                          lookups_.places, workspace->features);
  lookups_.ReadLengths(slice, static_cast<int64_t>(index) * n, n, workspace);
}

void CpuStep::ForwardOfAll(
    const Batch& slice, const PooledRows& pooled,
    FunctionRef<void(size_t index, const Model::Workspace& workspace)> read) {
  state_.pool().ParallelTasks(num_virtual_workers(), [&](int thread, size_t index) {
    Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
    Load(slice, pooled.ids, index, &w);
    w.training.reset();
    state_.model().Forward(packed_, &w);
    read(index, w);
  });
}

void CpuStep::Forward(const Batch& slice, const PooledRows& pooled, std::span<float> logits) {
  const size_t n = static_cast<size_t>(spec().numerics.samples());
  ForwardOfAll(slice, pooled, [&](size_t index, const Model::Workspace& w) {
    for (size_t output = 0; output < state_.model().num_outputs(); ++output)
      std::copy_n(w.logits.data() + output * n, n,
                  logits.data() + output * static_cast<size_t>(slice.size) + index * n);
  });
}

void CpuStep::ForwardMatch(const Batch& slice, const PooledRows& pooled,
                           const MatchVectors& vectors) {
  const int64_t n = spec().numerics.samples();
  ForwardOfAll(slice, pooled, [&](size_t index, const Model::Workspace& w) {
    state_.model().GetMatch(w, n, vectors.From(static_cast<int64_t>(index) * n));
  });
}

}  // namespace renzan
