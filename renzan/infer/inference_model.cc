#include "renzan/infer/inference_model.h"

#include <algorithm>
#include <bit>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/dense/load_parameters.h"
#include "renzan/embedding/load_tables.h"

namespace renzan {
namespace {

// Samples that a thread computes at a time: enough for matrix products to run at full speed, few
// enough for the activations to stay in the cache.
constexpr int64_t kPart = 128;

}  // namespace

InferenceOptions InferenceOptionsOf(const RunSpec& spec) {
  return {.model = spec.model,
          .tables = {.tables = spec.tables,
                     .rows = spec.numerics.rows,
                     .forward = spec.numerics.forward,
                     .make_store = nullptr},
          .features = spec.features};
}

InferenceModel::InferenceModel(const InferenceOptions& options, ThreadPool& pool)
    : pool_(pool),
      model_(MakeModel(options.model)),
      parameters_(static_cast<size_t>(model_->layout().size())),
      packed_(model_->layout(), parameters_.span(), options.model.precision),
      tables_(options.tables, pool),
      lookups_(LookupsOf(options.tables.tables, options.features, *model_)),
      workspaces_(static_cast<size_t>(pool.num_threads())) {}

void InferenceModel::Load(CheckpointReader& reader) {
  LoadParameters(reader, model_->layout(), parameters_.span());
  packed_.Pack(pool_);
  LoadWeights(reader, tables_.shards(), pool_);
}

void InferenceModel::Predict(const Batch& batch, std::span<float> logits) {
  const TraceSpan span("predict");
  CHECK(std::ssize(logits) == batch.size * std::ssize(model_->options().outputs));
  Forward(batch, [&](int64_t first, int64_t n, const Model::Workspace& w) {
    const size_t held = w.logits.size() / num_outputs();
    for (size_t output = 0; output < num_outputs(); ++output)
      std::copy_n(w.logits.data() + output * held, n,
                  logits.data() + output * static_cast<size_t>(batch.size) + first);
  });
}

void InferenceModel::PredictMatch(const Batch& batch, const MatchVectors& vectors) {
  const TraceSpan span("predict match");
  Forward(batch, [&](int64_t first, int64_t n, const Model::Workspace& w) {
    model_->GetMatch(w, n, vectors.From(first));
  });
}

void InferenceModel::Forward(
    const Batch& batch,
    FunctionRef<void(int64_t first, int64_t n, const Model::Workspace& workspace)> read) {
  ids_.clear();
  for (const size_t f : lookups_.features) {
    const FeatureIds& own = lookups_.IdsOf(batch, f);
    ids_.push_back({own.values, own.offsets, own.weights});
  }
  by_table_.Assign(tables_.tables(), ids_);
  // Small batches are also divided among all threads.
  const int64_t threads = pool_.num_threads();
  const int64_t part = std::clamp<int64_t>((batch.size + threads - 1) / threads, 1, kPart);
  const int64_t parts = (batch.size + part - 1) / part;
  pool_.ParallelTasks(static_cast<size_t>(parts), [&](int thread, size_t i) {
    const int64_t first = static_cast<int64_t>(i) * part, n = std::min(part, batch.size - first);
    read(first, n, ForwardPart(batch, first, n, thread));
  });
}

// Samples [first, first + n) of the batch.
const Model::Workspace& InferenceModel::ForwardPart(const Batch& batch, int64_t first, int64_t n,
                                                    int thread) {
  Model::Workspace& w = WorkspaceFor(n, thread);
  const int64_t num_dense = model_->options().num_dense;
  const float* dense = batch.dense.data() + first * num_dense;
  for (int64_t i = 0; i < n; ++i) w.dense.SetRow(i, 0, dense + i * num_dense, num_dense);
  tables_.Pool(by_table_.views(), first, n, lookups_.places, w.features);
  lookups_.ReadLengths(batch, first, n, &w);
  model_->Forward(packed_, &w);
  return w;
}

// Samples beyond n are leftovers of an earlier batch, whose logits nobody reads.
Model::Workspace& InferenceModel::WorkspaceFor(int64_t n, int thread) {
  const int64_t size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  std::unique_ptr<Model::Workspace>& workspace = workspaces_[static_cast<size_t>(thread)][size];
  if (workspace == nullptr) workspace = model_->MakeWorkspace(size);
  return *workspace;
}

}  // namespace renzan
