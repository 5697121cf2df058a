#include "renzan/train/hybrid_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/model/loss.h"
#include "renzan/optim/finite.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/train/make_plan.h"
#include "renzan/train/model_options.h"
#include "renzan/train/schedule.h"

namespace renzan {
HybridModel::HybridModel(const TrainConfig& config, const DatasetSchema& schema,
                         std::span<const double> pooling_factors, Communicator& comm,
                         ThreadPool& pool, InitialValues initial_values, const ShardingPlan* plan)
    : config_(config),
      pool_(pool),
      virtual_workers_(
          VirtualWorkerRange(config.numerics.virtual_workers, comm.world_size(), comm.rank())),
      samples_per_virtual_worker_(config.training.batch_size / config.numerics.virtual_workers) {
  model_ = MakeModel(ModelOptionsOf(config, schema));
  embeddings_ = std::make_unique<ShardedEmbeddings>(
      comm, pool,
      ShardedEmbeddingsOptions{
          .tables = TablesOf(config, schema, pooling_factors),
          .plan = plan ? *plan
                       : PlanOf(config, schema, pooling_factors,
                                Topology::OneHost(comm.world_size()), pool.num_threads()),
          .batch = config.training.batch_size,
          .virtual_workers = config.numerics.virtual_workers,
          .forward = ParseRowCodec(config.comm.forward),
          .backward = ParseRowCodec(config.comm.backward),
          .backward_scale = BackwardScale(config),
          .error_feedback_rows = config.comm.error_feedback_rows,
          .optimizer = SparseOptionsOf(config.optimizer.sparse),
          .rows = ParseFloatType(config.numerics.embedding_precision),
          .initial_values = initial_values,
          .seed = config.seed});

  const size_t size = static_cast<size_t>(model_->layout().size());
  parameters_ = AlignedBuffer(size);
  gradient_ = AlignedBuffer(size);
  packed_ = std::make_unique<PackedParameters>(model_->layout(), parameters_.span(),
                                               model_->options().precision);
  if (initial_values == InitialValues::kDraw)
    model_->layout().Initialize(config.seed, parameters_.span());
  finite_.resize(static_cast<size_t>(pool.num_threads()));
  dense_optimizer_ = std::make_unique<DenseOptimizer>(DenseOptionsOf(config.optimizer.dense), size);
  batches_ = std::make_unique<PreparedBatches>(*embeddings_);
  if (config.device == "cuda") {
    device_ = std::make_unique<DeviceEngine>(
        config, model_->options(), comm,
        DeviceEngine::Host{&parameters_, dense_optimizer_.get(), embeddings_.get(), &pool});
    logits_.resize(static_cast<size_t>(slice_end() - slice_begin()));
  }
  if (StepsOnDevice()) {
    stages_ = MakeDeviceStages();
    return;
  }
  dense_gradients_ = std::make_unique<DenseGradients>(comm, pool, model_->layout(),
                                                      DenseGradientOptionsOf(config));
  for (int thread = 0; thread < pool.num_threads(); ++thread)
    workspaces_.push_back(model_->MakeWorkspace(samples_per_virtual_worker_));
  stages_ = MakeStages();
}

// Exchanges are under way while other stages work: ids of the next batch from its lookup to its
// end, pooled rows during packing, the gradients of rows during the local part of the dense
// reduction, and the dense gradients during the update of the tables, unless that needs the norm of
// all gradients first.
std::vector<HybridModel::Stage> HybridModel::MakeStages() const {
  std::vector<Stage> stages = {
      {"input_dist", &HybridModel::BeginIds},
      {"lookup", &HybridModel::LookUp},
      {"input_dist", &HybridModel::BeginNextIds},
      {"pack parameters", &HybridModel::PackParameters},
      {"output_dist", &HybridModel::ReceivePooled},
      {"forward and backward",
       device_ ? &HybridModel::ForwardAndBackwardOnDevice : &HybridModel::ForwardAndBackward},
      {"gradients to owners", &HybridModel::SendGradients},
      {"reduce dense gradients", &HybridModel::BeginDenseReduction},
      {"gradients to owners", &HybridModel::ReceiveGradients}};
  const Stage end_of_reduction = {"reduce dense gradients", &HybridModel::EndDenseReduction};
  const Stage update = {"sparse update", &HybridModel::UpdateTables};
  if (config_.optimizer.max_gradient_norm > 0) {
    stages.insert(stages.end(),
                  {end_of_reduction, {"clip gradients", &HybridModel::ClipGradients}, update});
  } else {
    stages.insert(stages.end(), {update, end_of_reduction});
  }
  stages.insert(stages.end(), {{"dense update", &HybridModel::UpdateDense},
                               {"input_dist", &HybridModel::EndNextIds},
                               {"check dense part", &HybridModel::CheckDense}});
  return stages;
}

void HybridModel::BeginIds(StepState& state) { batches_->Begin(state.slice); }

void HybridModel::LookUp(StepState&) { embeddings_->LookUp(batches_->current()); }

void HybridModel::BeginNextIds(StepState& state) { batches_->BeginNext(state.next); }

void HybridModel::PackParameters(StepState&) { Pack(); }

void HybridModel::Pack() {
  if (device_) return;
  if (packed_is_stale_) packed_->Pack(pool_);
  packed_is_stale_ = false;
}

void HybridModel::ReceivePooled(StepState&) { embeddings_->ReceivePooled(); }

void HybridModel::Load(const Batch& slice, const PreparedBatch& ids, size_t index,
                       Model::Workspace* workspace) const {
  const TraceSpan span("read inputs");
  const int64_t num_dense = model_->options().num_dense;
  const float* dense =
      slice.dense.data() + static_cast<int64_t>(index) * samples_per_virtual_worker_ * num_dense;
  for (int64_t i = 0; i < samples_per_virtual_worker_; ++i)
    workspace->dense.SetRow(i, 0, dense + i * num_dense, num_dense);
  embeddings_->ReadPooled(ids, virtual_workers_.begin + static_cast<int>(index),
                          model_->options().embedding_dim, &workspace->features);
}

void HybridModel::Step(const Batch& slice, int64_t step, std::span<BinaryMetrics> metrics,
                       const Batch* next, bool measure_gradients) {
  const TraceSpan span("step");
  CHECK(slice.size == slice_end() - slice_begin());
  const int64_t non_finite_before = NumNonFinite(metrics);
  StepState state{.slice = slice,
                  .step = step,
                  .metrics = metrics,
                  .next = next,
                  .measure_gradients = measure_gradients,
                  .learning_rate_factor = LearningRateFactor(config_.optimizer.schedule, step)};
  for (const Stage& stage : stages_) {
    const TraceSpan of_stage(stage.name);
    (this->*stage.run)(state);
  }

  if (!StepsOnDevice())
    Observe(step, metrics, non_finite_before, state.dense_finite, state.tables_finite);
}

void HybridModel::Observe(int64_t step, std::span<const BinaryMetrics> metrics,
                          int64_t non_finite_before, bool dense_finite, bool tables_finite) {
  if (!finiteness_.ok()) return;
  const Finiteness now{.bad_step = step + 1,
                       .predictions = NumNonFinite(metrics) != non_finite_before,
                       .dense = !dense_finite,
                       .tables = !tables_finite};
  if (now.predictions || now.dense || now.tables) finiteness_ = now;
}

void HybridModel::ForwardAndBackward(StepState& state) {
  const size_t shards = embeddings_->shards().size();
  embeddings_->BeginGradients(batches_->current(), state.measure_gradients);
  const size_t virtual_workers = static_cast<size_t>(virtual_workers_.size());
  pool_.ParallelTasks(virtual_workers + shards, [&](int thread, size_t task) {
    if (task < virtual_workers) {
      TrainVirtualWorker(state, task, thread);
    } else {
      embeddings_->SortLookups(task - virtual_workers, thread, &batches_->current());
    }
  });
}

void HybridModel::TrainVirtualWorker(const StepState& state, size_t index, int thread) {
  const TraceSpan span("virtual worker");
  const size_t n = static_cast<size_t>(samples_per_virtual_worker_);
  Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
  const std::span<const float> labels = std::span(state.slice.label).subspan(index * n, n);
  Load(state.slice, batches_->current(), index, &w);
  w.training = TrainingPosition{state.step, (virtual_workers_.begin + static_cast<int64_t>(index)) *
                                                samples_per_virtual_worker_};
  {
    const TraceSpan forward("forward");
    model_->Forward(*packed_, &w);
  }
  state.metrics[static_cast<size_t>(thread)].Add(w.logits.span(), labels);
  BinaryCrossEntropyGradient(w.logits.span(), labels, config_.training.batch_size,
                             w.d_logits.span());
  {
    const TraceSpan backward("backward");
    model_->Backward(*packed_, &dense_gradients_->of(index), &w);
  }
  const TraceSpan pooled("write pooled gradients");
  embeddings_->WritePooledGradient(batches_->current(), batches_->current_ids(),
                                   virtual_workers_.begin + static_cast<int>(index),
                                   model_->options().embedding_dim, w.d_features);
}

void HybridModel::SendGradients(StepState&) {
  embeddings_->SendGradients(batches_->current());
  batches_->ContinueNext();
}

void HybridModel::BeginDenseReduction(StepState&) { dense_gradients_->Start(gradient_.span()); }

void HybridModel::ReceiveGradients(StepState&) {
  embeddings_->ReceiveGradients(batches_->current());
}

void HybridModel::EndDenseReduction(StepState&) {
  dense_gradients_->Continue();
  dense_gradients_->Finish();
}

void HybridModel::UpdateTables(StepState& state) {
  const double rate = state.learning_rate_factor * config_.optimizer.sparse.learning_rate;
  state.tables_finite = embeddings_->Update(
      batches_->current(),
      {.learning_rate = rate, .gradient_scale = state.clip, .step = state.step});
}

void HybridModel::UpdateDense(StepState& state) {
  const double rate = state.learning_rate_factor * config_.optimizer.dense.learning_rate;
  dense_optimizer_->Apply(pool_, rate, state.step, gradient_.span(), parameters_.span());
  Changed();
}

void HybridModel::EndNextIds(StepState&) { batches_->EndNext(); }

void HybridModel::CheckDense(StepState& state) {
  if (finiteness_.ok()) state.dense_finite = DenseIsFinite();
}

bool HybridModel::DenseIsFinite() {
  std::fill(finite_.begin(), finite_.end(), char{1});
  pool_.ParallelRanges(parameters_.size(), [&](int thread, size_t begin, size_t end) {
    char& mine = finite_[static_cast<size_t>(thread)];
    mine = AllFinite(parameters_.span().subspan(begin, end - begin));
    for (DenseOptimizer::State& state : dense_optimizer_->states())
      mine = mine && AllFinite(state.values.span().subspan(begin, end - begin));
  });
  return std::find(finite_.begin(), finite_.end(), 0) == finite_.end();
}

// Computes the norm and scales the dense gradients; those of the tables are scaled in their update.
void HybridModel::ClipGradients(StepState& state) {
  const double squared =
      SumOfSquares(pool_, gradient_.span()) + embeddings_->SquaredGradientNorm(batches_->current());
  gradient_norm_ = std::sqrt(squared);
  state.clip = ClipFactor(squared, config_.optimizer.max_gradient_norm);
  if (state.clip == 1.0f) return;
  pool_.ParallelRanges(gradient_.size(), [&](int, size_t begin, size_t end) {
    ScaleValues(state.clip, static_cast<int64_t>(end - begin), gradient_.data() + begin);
  });
}

void HybridModel::Predict(const Batch& slice, std::span<float> logits) {
  PreparedBatches batches = MakeBatches();
  Predict(slice, nullptr, &batches, logits);
}

void HybridModel::Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
                          std::span<float> logits) {
  const TraceSpan span("predict");
  CHECK(slice.size == slice_end() - slice_begin() && std::ssize(logits) == slice.size);
  batches->Begin(slice);
  if (device_) return PredictOnDevice(slice, next, batches, logits);
  embeddings_->LookUp(batches->current());
  batches->BeginNext(next);
  Pack();
  embeddings_->ReceivePooled();
  batches->ContinueNext();
  const size_t n = static_cast<size_t>(samples_per_virtual_worker_);
  pool_.ParallelTasks(static_cast<size_t>(virtual_workers_.size()), [&](int thread, size_t index) {
    Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
    Load(slice, batches->current(), index, &w);
    w.training.reset();
    model_->Forward(*packed_, &w);
    std::copy_n(w.logits.data(), n, logits.data() + index * n);
  });
  batches->EndNext();
}

}  // namespace renzan
