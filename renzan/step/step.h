#pragma once

// Trains a model step by step, and computes its predictions. Steps are synchronous, and the result
// is a pure function of the run's specification and the batches (ARCHITECTURE.md, "Placement never
// changes arithmetic"). There are three kinds, by what is computed where (make_step.h).
//
// Every rank constructs it alike and makes the same calls. Not thread-safe.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/data/batch.h"
#include "renzan/embedding/prepared_batches.h"
#include "renzan/model/metrics.h"
#include "renzan/run_spec/feature_lookups.h"
#include "renzan/state/trained_state.h"

namespace renzan {

struct StepInput {
  const Batch& slice;  // this worker's samples of the global batch
  int64_t step = 0;    // from 0
  // [tasks, threads of the pool]; they receive the predictions made before the update.
  std::span<OutputMetrics> metrics;
  // The next step's slice, given on all workers or on none: its ids are exchanged meanwhile. Their
  // rows are not read before that step.
  const Batch* next = nullptr;
  double rate_factor = 1;          // multiplies the learning rates of the schedule
  bool measure_gradients = false;  // fills ShardedEmbeddings::GradientErrors
};

class Step : public TrainedState {
 public:
  // A GPU may still compute the step when this returns, so that it never waits for the next one:
  // until Await() or the next step, keep `input.metrics` alive; it does not include this step yet,
  // and neither does finiteness().
  virtual void Run(const StepInput& input) = 0;
  // Waits for the last step.
  virtual void Await() {}

  // Computes logits [outputs, slice size] of this worker's samples. `next`, given on all workers or
  // on none, is the slice of the next call, whose ids are exchanged meanwhile. `batches` belongs to
  // this model's embeddings.
  virtual void Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
                       std::span<float> logits) = 0;
  void Predict(const Batch& slice, std::span<float> logits);
  // Like Predict, but leaves the vectors [slice size, width] of an output that is a match. Only on
  // CPUs: no GPU computes a block that gives a match.
  virtual void PredictMatch(const Batch& slice, const Batch* next, PreparedBatches* batches,
                            const MatchVectors& vectors);

  PreparedBatches MakeBatches() const { return PreparedBatches(state_.embeddings()); }

  const Finiteness& finiteness() const override { return finiteness_; }

  // In the last step, before clipping: the joint norm of the dense gradients and the gradients of
  // all embedding rows of the batch. NaN unless optimizer.max_gradient_norm is set.
  double gradient_norm() const { return gradient_norm_; }

  // See ShardedEmbeddings: counts since the last call, and errors of the last step.
  WireRange TakeGradientRange() { return state_.embeddings().TakeGradientRange(); }
  const std::vector<std::vector<WireError>>& GradientErrors() const {
    return state_.embeddings().GradientErrors();
  }

  const RunSpec& spec() const { return state_.spec(); }
  const Model& model() const { return state_.model(); }
  ThreadPool& pool() { return state_.pool(); }
  int64_t slice_begin() const { return state_.slice_begin(); }
  int64_t slice_end() const { return state_.slice_end(); }
  // BatchLoaderOptions::readers.
  int batch_readers() const;

 protected:
  // `state` must outlive it.
  explicit Step(ModelState& state)
      : state_(state),
        batches_(state.embeddings()),
        lookups_(LookupsOf(state.spec().tables, state.spec().features, state.model())) {}

  // Records the first step that was not finite. `non_finite_before`: the number of non-finite
  // predictions in `metrics` before this step.
  void Observe(int64_t step, std::span<const OutputMetrics> metrics, int64_t non_finite_before,
               bool dense_finite, bool tables_finite);
  // Of the first task. GPUs have only one.
  std::span<const float> LabelsOf(const Batch& slice) const {
    return slice.labels(spec().loss.tasks[0].label_column);
  }
  // Uses the pool's threads.
  void AddMetrics(std::span<const float> logits, std::span<const float> labels,
                  std::span<OutputMetrics> metrics);
  OutputMetrics& MetricsOf(const StepInput& input, size_t task, int thread) const {
    return input.metrics[task * static_cast<size_t>(state_.pool().num_threads()) +
                         static_cast<size_t>(thread)];
  }
  double learning_rate_factor(const StepInput& input) const;
  // PreparedBatches::Begin's ids, valid until the next call.
  std::span<const IdsView> IdsOf(const Batch& slice);

  ModelState& state_;
  PreparedBatches batches_;
  FeatureLookups lookups_;
  Finiteness finiteness_;
  double gradient_norm_ = std::numeric_limits<double>::quiet_NaN();

 private:
  std::vector<IdsView> ids_;
};

}  // namespace renzan
