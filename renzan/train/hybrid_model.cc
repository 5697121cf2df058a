#include "renzan/train/hybrid_model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/loss.h"
#include "renzan/optim/finite.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/train/schedule.h"

namespace renzan {
namespace {

// The value of a configuration keyword. Fails for an unknown word, because the configuration may
// not have come from a validated file.
template <typename Value>
Value ValueNamed(const char* key, const std::string& name,
                 std::initializer_list<std::pair<const char*, Value>> values) {
  for (const auto& [word, value] : values)
    if (name == word) return value;
  Fail(ErrorCode::kConfig, "{}: '{}' is unknown", key, name);
}

DenseOptimizerOptions DenseOptions(const DenseOptimizerConfig& config) {
  using enum DenseOptimizerType;
  return {.type = ValueNamed("optimizer.dense.type", config.type,
                             {std::pair{"sgd", kSgd}, {"adagrad", kAdagrad}, {"adam", kAdam}}),
          .epsilon = config.epsilon,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .initial_accumulator = config.initial_accumulator,
          .weight_decay = config.weight_decay};
}

SparseOptimizerOptions SparseOptions(const SparseOptimizerConfig& config) {
  using enum SparseOptimizerType;
  using enum WeightDecayMode;
  return {
      .type = ValueNamed(
          "optimizer.sparse.type", config.type,
          {std::pair{"sgd", kSgd}, {"adagrad", kAdagrad}, {"rowwise_adagrad", kRowWiseAdagrad}}),
      .epsilon = config.epsilon,
      .initial_accumulator = config.initial_accumulator,
      .weight_decay = config.weight_decay,
      .weight_decay_mode =
          ValueNamed("optimizer.sparse.weight_decay_mode", config.weight_decay_mode,
                     {std::pair{"decoupled", kDecoupled}, {"l2", kL2}})};
}

std::vector<TableSpec> Tables(const ModelConfig& config, const DatasetSchema& schema,
                              std::span<const double> pooling_factors) {
  CHECK(pooling_factors.size() == schema.categorical.size());
  std::vector<std::string> names;
  std::vector<TableSpec> tables;
  for (size_t t = 0; t < schema.categorical.size(); ++t) {
    const CategoricalFeature& feature = schema.categorical[t];
    const auto own = config.tables.find(feature.name);
    const std::string& pooling = own != config.tables.end() ? own->second.pooling : config.pooling;
    tables.push_back(
        {.name = feature.name,
         .num_embeddings = feature.num_embeddings,
         .embedding_dim = config.embedding_dim,
         .pooling = ValueNamed("model.pooling", pooling,
                               {std::pair{"sum", Pooling::kSum}, {"mean", Pooling::kMean}}),
         .multi_hot = feature.multi_hot,
         .pooling_factor = pooling_factors[t]});
    names.push_back(feature.name);
  }
  for (const auto& [name, table] : config.tables) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = NearestName(name, names);
    Fail(ErrorCode::kConfig, "model.tables.{}: the dataset has no categorical feature '{}'{}", name,
         name, nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
  }
  return tables;
}

int64_t NumNonFinite(std::span<const BinaryMetrics> metrics) {
  int64_t sum = 0;
  for (const BinaryMetrics& thread : metrics) sum += thread.non_finite;
  return sum;
}

}  // namespace

HybridModel::HybridModel(const TrainConfig& config, const DatasetSchema& schema,
                         std::span<const double> pooling_factors, Communicator& comm,
                         ThreadPool& pool, InitialValues initial_values)
    : config_(config),
      pool_(pool),
      virtual_workers_(
          VirtualWorkerRange(config.numerics.virtual_workers, comm.world_size(), comm.rank())),
      samples_per_virtual_worker_(config.training.batch_size / config.numerics.virtual_workers) {
  const ModelConfig& m = config.model;
  const int64_t num_tables = static_cast<int64_t>(schema.categorical.size());
  model_ = MakeModel({.type = m.type,
                      .num_dense = static_cast<int64_t>(schema.dense.size()),
                      .num_tables = num_tables,
                      .embedding_dim = m.embedding_dim,
                      .bottom_mlp = m.bottom_mlp,
                      .top_mlp = m.top_mlp,
                      .cross_layers = m.cross_layers,
                      .cross_rank = m.cross_rank,
                      .dropout = {.rate = m.dropout, .seed = config.seed},
                      .precision = PrecisionOf(config.numerics)});
  embeddings_ = std::make_unique<ShardedEmbeddings>(
      comm, pool,
      ShardedEmbeddingsOptions{.tables = Tables(m, schema, pooling_factors),
                               .batch = config.training.batch_size,
                               .virtual_workers = config.numerics.virtual_workers,
                               .forward = ParseWireType(config.comm.forward),
                               .backward = ParseWireType(config.comm.backward),
                               .backward_scale = BackwardScale(config),
                               .optimizer = SparseOptions(config.optimizer.sparse),
                               .initial_values = initial_values,
                               .seed = config.seed});

  const size_t size = static_cast<size_t>(model_->layout().size());
  parameters_ = AlignedBuffer(size);
  gradient_ = AlignedBuffer(size);
  packed_ = std::make_unique<PackedParameters>(model_->layout(), parameters_.span(),
                                               model_->options().precision);
  if (initial_values == InitialValues::kDraw)
    model_->layout().Initialize(config.seed, parameters_.span());
  for (int v = virtual_workers_.begin; v < virtual_workers_.end; ++v) leaves_.emplace_back(size);
  for (AlignedBuffer& leaf : leaves_) leaf_spans_.push_back(leaf.span());
  finite_.resize(static_cast<size_t>(pool.num_threads()));
  reducer_ = std::make_unique<TreeReducer>(comm, pool, config.numerics.virtual_workers, size,
                                           ParseWireType(config.comm.dense));
  dense_optimizer_ = std::make_unique<DenseOptimizer>(DenseOptions(config.optimizer.dense), size);
  for (int thread = 0; thread < pool.num_threads(); ++thread)
    workspaces_.push_back(model_->MakeWorkspace(samples_per_virtual_worker_));
  for (std::unique_ptr<PreparedBatch>* batch : {&current_, &next_, &predicted_})
    *batch = embeddings_->MakePreparedBatch();
  stages_ = MakeStages();
}

// Exchanges are under way while other stages work: ids of the next batch from its lookup to its
// end, pooled rows during packing, the gradients of rows during the local part of the dense
// reduction, and the dense gradients during the update of the tables, unless that needs the norm of
// all gradients first.
std::vector<HybridModel::Stage> HybridModel::MakeStages() const {
  std::vector<Stage> stages = {{"input_dist", &HybridModel::BeginIds},
                               {"lookup", &HybridModel::LookUp},
                               {"input_dist", &HybridModel::BeginNextIds},
                               {"pack parameters", &HybridModel::PackParameters},
                               {"output_dist", &HybridModel::ReceivePooled},
                               {"forward and backward", &HybridModel::ForwardAndBackward},
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
                               {"input_dist", &HybridModel::EndNextIds}});
  return stages;
}

void HybridModel::StartIds(const Batch& slice, PreparedBatch* batch) {
  CHECK(slice.size == slice_end() - slice_begin());
  ids_.clear();
  for (const FeatureIds& feature : slice.categorical)
    ids_.push_back({feature.values, feature.offsets});
  batch->ids.Start(ids_);
}

void HybridModel::BeginIds(StepState& state) {
  if (next_is_ready_) {
    std::swap(current_, next_);
    next_is_ready_ = false;
    return;
  }
  StartIds(state.slice, current_.get());
  current_->ids.Continue();
  current_->ids.Finish();
}

void HybridModel::LookUp(StepState&) { embeddings_->LookUp(*current_); }

void HybridModel::BeginNextIds(StepState& state) {
  if (state.next != nullptr) StartIds(*state.next, next_.get());
}

void HybridModel::PackParameters(StepState&) { Pack(); }

void HybridModel::Pack() {
  if (packed_is_stale_) packed_->Pack(pool_);
  packed_is_stale_ = false;
}

void HybridModel::ReceivePooled(StepState&) { embeddings_->ReceivePooled(); }

void HybridModel::Load(const Batch& slice, size_t index, Model::Workspace* workspace) const {
  const int64_t num_dense = model_->options().num_dense;
  const float* dense =
      slice.dense.data() + static_cast<int64_t>(index) * samples_per_virtual_worker_ * num_dense;
  for (int64_t i = 0; i < samples_per_virtual_worker_; ++i)
    workspace->dense.SetRow(i, 0, dense + i * num_dense, num_dense);
  embeddings_->ReadPooled(virtual_workers_.begin + static_cast<int>(index),
                          model_->options().embedding_dim, &workspace->features);
}

void HybridModel::Step(const Batch& slice, int64_t step, std::span<BinaryMetrics> metrics,
                       const Batch* next) {
  const TraceSpan span("step");
  const int64_t non_finite_before = NumNonFinite(metrics);
  StepState state{.slice = slice,
                  .step = step,
                  .metrics = metrics,
                  .next = next,
                  .learning_rate_factor = LearningRateFactor(config_.optimizer.schedule, step)};
  for (const Stage& stage : stages_) {
    const TraceSpan of_stage(stage.name);
    (this->*stage.run)(state);
  }

  if (!finiteness_.ok()) return;
  Finiteness now{.bad_step = step + 1,
                 .predictions = NumNonFinite(metrics) != non_finite_before,
                 .dense = !DenseIsFinite(),
                 .tables = !state.tables_finite};
  if (now.predictions || now.dense || now.tables) finiteness_ = now;
}

void HybridModel::ForwardAndBackward(StepState& state) {
  const size_t tables = embeddings_->tables().size();
  pool_.ParallelTasks(leaves_.size() + tables, [&](int thread, size_t task) {
    if (task < leaves_.size()) {
      TrainVirtualWorker(state, task, thread);
    } else {
      embeddings_->SortLookups(task - leaves_.size(), thread, current_.get());
    }
  });
}

void HybridModel::TrainVirtualWorker(const StepState& state, size_t index, int thread) {
  const TraceSpan span("virtual worker");
  const size_t n = static_cast<size_t>(samples_per_virtual_worker_);
  Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
  const std::span<const float> labels = std::span(state.slice.label).subspan(index * n, n);
  Load(state.slice, index, &w);
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
    model_->Backward(*packed_, leaves_[index].data(), &w);
  }
  embeddings_->WritePooledGradient(virtual_workers_.begin + static_cast<int>(index),
                                   model_->options().embedding_dim, w.d_features);
}

void HybridModel::SendGradients(StepState& state) {
  embeddings_->SendGradients();
  if (state.next != nullptr) next_->ids.Continue();
}

void HybridModel::BeginDenseReduction(StepState&) {
  reducer_->Start(leaf_spans_, gradient_.span());
}

void HybridModel::ReceiveGradients(StepState&) { embeddings_->ReceiveGradients(*current_); }

void HybridModel::EndDenseReduction(StepState&) {
  reducer_->Continue();
  reducer_->Finish();
}

void HybridModel::UpdateTables(StepState& state) {
  const double rate = state.learning_rate_factor * config_.optimizer.sparse.learning_rate;
  state.tables_finite = embeddings_->Update(*current_, rate, state.clip);
}

void HybridModel::UpdateDense(StepState& state) {
  const double rate = state.learning_rate_factor * config_.optimizer.dense.learning_rate;
  dense_optimizer_->Apply(pool_, rate, state.step, gradient_.span(), parameters_.span());
  packed_is_stale_ = true;
}

void HybridModel::EndNextIds(StepState& state) {
  if (state.next == nullptr) return;
  next_->ids.Finish();
  next_is_ready_ = true;
}

bool HybridModel::DenseIsFinite() {
  const TraceSpan span("check dense part");
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
      SumOfSquares(pool_, gradient_.span()) + embeddings_->SquaredGradientNorm(*current_);
  gradient_norm_ = std::sqrt(squared);
  state.clip = ClipFactor(squared, config_.optimizer.max_gradient_norm);
  if (state.clip == 1.0f) return;
  pool_.ParallelRanges(gradient_.size(), [&](int, size_t begin, size_t end) {
    ScaleValues(state.clip, static_cast<int64_t>(end - begin), gradient_.data() + begin);
  });
}

void HybridModel::Predict(const Batch& slice, std::span<float> logits) {
  CHECK(static_cast<int64_t>(logits.size()) == slice.size);
  StartIds(slice, predicted_.get());
  predicted_->ids.Continue();
  predicted_->ids.Finish();
  embeddings_->LookUp(*predicted_);
  Pack();
  embeddings_->ReceivePooled();
  const size_t n = static_cast<size_t>(samples_per_virtual_worker_);
  pool_.ParallelTasks(leaves_.size(), [&](int thread, size_t index) {
    Model::Workspace& w = *workspaces_[static_cast<size_t>(thread)];
    Load(slice, index, &w);
    w.training.reset();
    model_->Forward(*packed_, &w);
    std::copy_n(w.logits.data(), n, logits.data() + index * n);
  });
}

}  // namespace renzan
