#pragma once

// A recommendation model distributed over workers: the dense part is replicated and data-parallel,
// the embedding tables are model-parallel. Steps are synchronous, and the result is a pure function
// of configuration, seed and batches (ARCHITECTURE.md, "Placement never changes arithmetic").
//
// Every rank constructs it alike and makes the same calls. Not thread-safe.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/data/batch.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/embedding/sharded_embeddings.h"
#include "renzan/model/metrics.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/train/config.h"
#include "renzan/train/dense_gradients.h"
#include "renzan/train/device_engine.h"
#include "renzan/train/device_options.h"
#include "renzan/train/prepared_batches.h"
#include "renzan/train/quality/finiteness.h"

namespace renzan {

class HybridModel {
 public:
  // pooling_factors: mean lookups per sample of each categorical feature; used only for placement.
  // `initial_values`: kZero is enough for a model that is about to be loaded. `plan`: the same on
  // all workers; if null, each makes one, as for workers on one host.
  HybridModel(const TrainConfig& config, const DatasetSchema& schema,
              std::span<const double> pooling_factors, Communicator& comm, ThreadPool& pool,
              InitialValues initial_values = InitialValues::kDraw,
              const ShardingPlan* plan = nullptr);

  // The samples of the global batch that this worker reads.
  int64_t slice_begin() const { return virtual_workers_.begin * samples_per_virtual_worker_; }
  int64_t slice_end() const { return virtual_workers_.end * samples_per_virtual_worker_; }

  int virtual_workers() const { return config_.numerics.virtual_workers; }

  // One training step on this worker's slice of the global batch. `metrics` (one per thread of the
  // pool) receive the predictions made before the update. `next`, on all workers or on none, is the
  // slice that the next call will get: its ids are exchanged meanwhile. The weights that they stand
  // for are not read before that call. `measure_gradients`: also fills embeddings().GradientErrors.
  //
  // A GPU may still compute the step when this returns, so that it never waits for the next one:
  // until FinishStep() or the next step, `metrics` must stay, and lack it, as finiteness() does.
  void Step(const Batch& slice, int64_t step, std::span<BinaryMetrics> metrics,
            const Batch* next = nullptr, bool measure_gradients = false);
  // Awaits the last step. What reads or changes the model does it, too.
  void FinishStep();

  // Over all finished steps: the predictions for this worker's samples, the dense part and its
  // tables.
  const Finiteness& finiteness() const { return finiteness_; }

  // Of the last step, before clipping: the joint norm of the dense gradients and the gradients of
  // all embedding rows of the batch. NaN unless optimizer.max_gradient_norm is set.
  double gradient_norm() const { return gradient_norm_; }

  // logits [slice size] of this worker's samples.
  void Predict(const Batch& slice, std::span<float> logits);
  // The same for one of several slices: `next`, on all workers or on none, is that of the next
  // call, whose ids are exchanged meanwhile. `batches` are of this model's embeddings.
  void Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
               std::span<float> logits);

  PreparedBatches MakeBatches() const { return PreparedBatches(*embeddings_); }

  // Of the last steps: see ShardedEmbeddings.
  WireRange TakeGradientRange() { return embeddings_->TakeGradientRange(); }
  const std::vector<std::vector<WireError>>& GradientErrors() const {
    return embeddings_->GradientErrors();
  }
  const std::vector<TableSpec>& tables() const { return embeddings_->map().tables(); }

  // For saving and loading, also the threads of its steps.
  ThreadPool& pool() { return pool_; }
  // BatchLoaderOptions::readers.
  int batch_readers() const {
    return BatchReaders(config_, embeddings_->map().world_size(), pool_.num_threads());
  }
  const Model& model() const { return *model_; }
  // In this process's memory, into which a GPU's values are copied first. Whoever changes them
  // calls Changed() afterwards.
  AlignedBuffer& parameters() {
    CopyFromDevice();
    return parameters_;
  }
  DenseOptimizer& dense_optimizer() {
    CopyFromDevice();
    return *dense_optimizer_;
  }
  ShardedEmbeddings& embeddings() {
    CopyFromDevice();
    return *embeddings_;
  }
  void Changed() {
    packed_is_stale_ = true;
    if (device_) device_->HostChanged();
  }

 private:
  // What the stages of a step hand on.
  struct StepState {
    const Batch& slice;
    const int64_t step;
    const std::span<BinaryMetrics> metrics;
    const Batch* const next;
    const bool measure_gradients;
    const double learning_rate_factor;
    float clip = 1.0f;  // factor of all gradients
    bool tables_finite = true, dense_finite = true;
  };
  // The name is also the phase's in traces.
  struct Stage {
    const char* name;
    void (HybridModel::*run)(StepState& state);
  };
  std::vector<Stage> MakeStages() const;
  std::vector<Stage> MakeDeviceStages() const;  // of whole steps on a GPU

  // The stages.
  void BeginIds(StepState& state);  // of this batch, unless the last step did
  void LookUp(StepState& state);
  void BeginNextIds(StepState& state);
  void PackParameters(StepState& state);
  void ReceivePooled(StepState& state);
  // Also sorts the lookups, which fills the time of threads that are done with their virtual
  // workers.
  void ForwardAndBackward(StepState& state);
  void SendGradients(StepState& state);
  void BeginDenseReduction(StepState& state);
  void ReceiveGradients(StepState& state);
  void EndDenseReduction(StepState& state);
  void ClipGradients(StepState& state);
  void UpdateTables(StepState& state);
  void UpdateDense(StepState& state);
  void EndNextIds(StepState& state);
  void CheckDense(StepState& state);
  // Stages on a GPU: of the dense part alone, and of whole steps.
  void ForwardAndBackwardOnDevice(StepState& state);
  void BeginStepOnDevice(StepState& state);
  void FinishLastStep(StepState& state);
  void ExchangeNextIds(StepState& state);

  // For one virtual worker, counted within this worker: predictions into `metrics`, its dense
  // gradient into dense_gradients_, the gradients of the pooled rows into embeddings_.
  void TrainVirtualWorker(const StepState& state, size_t index, int thread);
  void Pack();
  // Fills the workspace with one virtual worker's inputs. `index` counts within this worker.
  void Load(const Batch& slice, const PreparedBatch& ids, size_t index,
            Model::Workspace* workspace) const;

  // Between the exchange of embeddings and a GPU that has the dense part.
  void ReadPooledForDevice(const PreparedBatch& batch);
  void WriteGradientsOfDevice();
  void AddMetrics(std::span<const float> labels, std::span<BinaryMetrics> metrics);
  void PredictOnDevice(const Batch& slice, const Batch* next, PreparedBatches* batches,
                       std::span<float> logits);
  bool StepsOnDevice() const { return device_ && device_->has_tables(); }
  void CopyFromDevice() {
    FinishStep();
    if (device_) device_->UpdateHost();
  }
  // Keeps the first step that was not finite. `non_finite_before`: predictions in its metrics.
  void Observe(int64_t step, std::span<const BinaryMetrics> metrics, int64_t non_finite_before,
               bool dense_finite, bool tables_finite);

  bool DenseIsFinite();

  TrainConfig config_;
  ThreadPool& pool_;
  IndexRange virtual_workers_;  // assigned to this worker
  int64_t samples_per_virtual_worker_ = 0;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ShardedEmbeddings> embeddings_;
  AlignedBuffer parameters_, gradient_;
  std::unique_ptr<PackedParameters> packed_;
  bool packed_is_stale_ = true;
  std::unique_ptr<DenseGradients> dense_gradients_;
  double gradient_norm_ = std::numeric_limits<double>::quiet_NaN();
  std::unique_ptr<DenseOptimizer> dense_optimizer_;
  std::unique_ptr<DeviceEngine> device_;                       // null: on this process's CPUs
  std::vector<std::unique_ptr<Model::Workspace>> workspaces_;  // per thread
  std::vector<float> logits_;                                  // of own samples, from the GPU
  // Of a whole step that the GPU may still compute.
  struct StepOnDevice {
    int64_t step;
    std::span<BinaryMetrics> metrics;
  };
  std::optional<StepOnDevice> unfinished_;
  std::vector<float> labels_;  // its own samples'
  std::unique_ptr<PreparedBatches> batches_;
  std::vector<Stage> stages_;
  std::vector<char> finite_;  // per thread
  Finiteness finiteness_;
};

}  // namespace renzan
