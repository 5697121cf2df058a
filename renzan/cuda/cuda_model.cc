// librenzan_cuda.so: a model on one GPU.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "renzan/base/build_id.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cuda/dense_engine.h"
#include "renzan/cuda/embedding_engine.h"
#include "renzan/cuda/facts.h"
#include "renzan/cuda/plugin.h"

namespace renzan::cuda {
namespace {

// What a step reads besides its batch, and writes besides its predictions.
struct StepMemory {
  SparseStepOnDevice sparse;
  DenseStep dense;
  int64_t number = 0;
  int32_t dense_finite = 1, tables_finite = 1;
};

// A batch on its way to the device, in one piece of memory.
class StagedBatch {
 public:
  void Copy(const DeviceBatch& batch, int num_tables, int64_t samples, ParallelTasks parallel,
            const Stream& stream);

  const float* dense() const { return At<float>(dense_); }
  const float* labels() const { return At<float>(labels_); }
  const float* pooled() const { return At<float>(pooled_); }
  const DeviceLookups& lookups() const { return lookups_; }
  const Event& arrived() const { return arrived_; }
  // Changes when the batch is at another address than the last one.
  const void* place() const { return device_.as<void>(); }

 private:
  template <class T>
  const T* At(size_t offset) const {
    return reinterpret_cast<const T*>(device_.as<std::byte>() + offset);
  }

  PinnedMemory host_;
  DeviceMemory device_;
  size_t dense_ = 0, labels_ = 0, pooled_ = 0;
  struct PieceCopy {
    std::byte* to;
    std::span<const std::byte> from;
  };
  std::vector<PieceCopy> copies_;
  std::vector<int32_t> first_;  // lookup of each table
  DeviceLookups lookups_;
  Event arrived_;
};

void StagedBatch::Copy(const DeviceBatch& batch, int num_tables, int64_t samples,
                       ParallelTasks parallel, const Stream& stream) {
  arrived_.Synchronize();  // the previous copy may still be reading host_
  const bool jagged = std::any_of(batch.offsets.begin(), batch.offsets.end(),
                                  [](const auto& offsets) { return !offsets.empty(); });
  size_t num_lookups = 0;
  for (const auto& rows : batch.rows) num_lookups += rows.size();
  if (num_lookups > static_cast<size_t>(kMaxDeviceLookups))
    Fail(ErrorCode::kConfig,
         "a batch looks up {}, but at most {} can be on a GPU: use a smaller "
         "training.batch_size",
         Counted(num_lookups, "row"), kMaxDeviceLookups);
  const size_t num_offsets =
      jagged ? static_cast<size_t>(num_tables) * static_cast<size_t>(samples + 1) : 0;
  size_t end = 0;
  const auto place = [&](size_t bytes) {
    const size_t begin = end;
    end += Aligned(bytes);
    return begin;
  };
  dense_ = place(batch.dense.size_bytes());
  labels_ = place(batch.labels.size_bytes());
  pooled_ = place(batch.pooled.size_bytes());
  const size_t rows = place(num_lookups * sizeof(int32_t));
  const size_t offsets = place(num_offsets * sizeof(int32_t));
  const size_t capacity = end <= host_.bytes() || host_.bytes() == 0 ? end : end + end / 4;
  host_.Reserve(capacity);
  device_.Reserve(capacity);

  std::byte* const to = host_.as<std::byte>();
  // Pieces of a few hundred kilobytes, to share among threads.
  constexpr size_t kPieceBytes = size_t{1} << 18;
  copies_.clear();
  const auto copy = [&](size_t at, const auto& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    for (size_t first = 0; first < bytes.size(); first += kPieceBytes)
      copies_.push_back(
          {to + at + first, bytes.subspan(first, std::min(kPieceBytes, bytes.size() - first))});
  };
  copy(dense_, batch.dense);
  copy(labels_, batch.labels);
  copy(pooled_, batch.pooled);
  first_.clear();
  for (size_t first = 0, t = 0; t < batch.rows.size(); first += batch.rows[t++].size()) {
    copy(rows + first * sizeof(int32_t), batch.rows[t]);
    first_.push_back(static_cast<int32_t>(first));
  }
  const auto write_offsets = [&](size_t t) {
    int32_t* const of_table =
        reinterpret_cast<int32_t*>(to + offsets) + t * static_cast<size_t>(samples + 1);
    for (size_t s = 0; s <= static_cast<size_t>(samples); ++s)
      of_table[s] =
          first_[t] + (batch.offsets[t].empty() ? static_cast<int32_t>(s) : batch.offsets[t][s]);
  };
  parallel(copies_.size() + (jagged ? batch.rows.size() : 0), [&](size_t i) {
    if (i < copies_.size()) {
      std::memcpy(copies_[i].to, copies_[i].from.data(), copies_[i].from.size());
    } else {
      write_offsets(i - copies_.size());
    }
  });
  CopyToDevice(to, end, device_.as<void>(), stream);
  arrived_.Record(stream.get());
  lookups_ = {.rows = At<int32_t>(rows),
              .offsets = jagged ? At<int32_t>(offsets) : nullptr,
              .num_lookups = static_cast<int64_t>(num_lookups)};
}

// A sequence of launches, captured on its second run: the first run may still load code.
class CapturedLaunches {
 public:
  CapturedLaunches() = default;
  CapturedLaunches(const CapturedLaunches&) = delete;
  ~CapturedLaunches() { Forget(); }

  void Forget() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
    runs_ = 0;
  }

  template <class Launch>
  void Run(const Stream& stream, const Launch& launch) {
    if (runs_++ == 0) return launch();
    if (executable_ == nullptr) {
      Check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
            "recording a step");
      launch();
      cudaGraph_t graph = nullptr;
      Check(cudaStreamEndCapture(stream.get(), &graph), "recording a step");
      const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
      cudaGraphDestroy(graph);
      Check(status, "recording a step");
    }
    Check(cudaGraphLaunch(executable_, stream.get()), "launching a step");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
  int64_t runs_ = 0;
};

class CudaModel : public DeviceModel {
 public:
  explicit CudaModel(const DeviceModelOptions& options)
      : options_(options),
        facts_(FactsOf(options.device)),
        dense_(options, compute_),
        step_(sizeof(StepMemory)) {
    for (HostStep& step : host_steps_) {
      step.memory = PinnedMemory(sizeof(StepMemory));
      step.logits = PinnedMemory(static_cast<size_t>(options.own_samples()) * sizeof(float));
    }
    const int64_t dim = options.model.embedding_dim;
    features_ = dense_.model().features_columns();
    pooled_columns_ = features_ - dim;
    if (options.tables.empty()) {
      pooled_ = DeviceMemory(static_cast<size_t>(options.own_samples() * pooled_columns_ *
                                                 BytesPerValue(options.model.precision)));
    } else {
      embeddings_.emplace(options, features_, dim, compute_);
    }
  }

  const DeviceFacts& facts() const override { return facts_; }

  void SetParameters(std::span<const float> values) override { Set(values, dense_.parameters()); }
  void GetParameters(std::span<float> values) override { Get(dense_.parameters(), values); }
  void SetDenseState(size_t index, std::span<const float> values) override {
    Set(values, dense_.state(index));
  }
  void GetDenseState(size_t index, std::span<float> values) override {
    Get(dense_.state(index), values);
  }
  void SetRows(size_t table, int64_t first, std::span<const float> weights,
               std::span<const float> states) override {
    UseDevice();
    embeddings_->SetRows(table, first, weights, states);
  }
  void TakeUpdatedRows(FunctionRef<void(size_t, std::span<const int32_t>, std::span<const float>,
                                        std::span<const float>)>
                           visit) override {
    UseDevice();
    embeddings_->TakeUpdatedRows(visit);
  }

  void Stage(const DeviceBatch& batch, ParallelTasks parallel) override {
    UseDevice();
    next_ = 1 - current_;
    batches_[next_].Copy(batch, static_cast<int>(options_.tables.size()), options_.own_samples(),
                         parallel, copies_);
  }

  void BeginForward() override {
    const StagedBatch& batch = TakeBatch();
    Forward(batch, nullptr);
    dense_.CopyLogits();
    CopyResults();
  }

  void BeginForwardAndBackward(int64_t global_batch, int64_t step) override {
    const StagedBatch& batch = TakeBatch();
    SetStep({.step = step});
    Forward(batch, &step_.as<StepMemory>()->number);
    dense_.BackwardToFeatures(batch.labels(), global_batch);
    dense_.BackwardToDense();
    CopyResults();
  }

  void BeginStep(int64_t global_batch, const DeviceStep& step) override {
    CHECK(embeddings_.has_value());
    const StagedBatch& batch = TakeBatch();
    if (embeddings_->Reserve(batch.lookups().num_lookups))
      for (CapturedLaunches& captured : steps_) captured.Forget();
    SetStep(step);
    const auto launch = [&] { LaunchStep(batch, global_batch); };
    CapturedLaunches& captured = steps_[current_];
    // The launches for a multi-hot batch depend on its number of lookups.
    if (batch.lookups().offsets != nullptr) {
      launch();
    } else {
      if (std::exchange(places_[current_], batch.place()) != batch.place()) captured.Forget();
      captured.Run(compute_, launch);
    }
    CopyResults();
  }

  Result Finish(std::span<float> logits) override {
    UseDevice();
    CHECK(finished_ < begun_);
    const HostStep& host = host_steps_[finished_++ % 2];
    host.done.Synchronize();
    CHECK(logits.size_bytes() == host.logits.bytes());
    std::memcpy(logits.data(), host.logits.as<void>(), logits.size_bytes());
    const StepMemory& step = *host.memory.as<StepMemory>();
    return {.dense_finite = step.dense_finite != 0, .tables_finite = step.tables_finite != 0};
  }

  void ReadGradients(std::span<float> pooled, std::span<const std::span<float>> dense) override {
    UseDevice();
    const int64_t rows = options_.own_samples();
    const int64_t dim = options_.model.embedding_dim;
    const Precision precision = options_.model.precision;
    const int64_t value_bytes = BytesPerValue(precision);
    CopyColumns(rows, pooled_columns_,
                static_cast<const std::byte*>(dense_.d_features()) + dim * value_bytes, features_,
                pooled_.as<void>(), pooled_columns_, precision, compute_.get());
    pinned_gradients_.Reserve(pooled_.bytes());
    CopyToHost(pooled_.as<void>(), pooled_.bytes(), pinned_gradients_.as<void>(), compute_);
    const size_t size = static_cast<size_t>(dense_.model().layout().size());
    leaf_.Reserve(size * sizeof(float));
    for (size_t v = 0; v < dense.size(); ++v) {
      CHECK(dense[v].size() == size);
      dense_.SumGradients(static_cast<int>(v), 1, leaf_.as<float>());
      CopyToHost(leaf_.as<void>(), dense[v].size_bytes(), dense[v].data(), compute_);
    }
    compute_.Synchronize();
    if (precision == Precision::kFloat32) {
      std::memcpy(pooled.data(), pinned_gradients_.as<void>(), pooled.size_bytes());
    } else {
      const BFloat16Bits* bits = pinned_gradients_.as<BFloat16Bits>();
      for (size_t i = 0; i < pooled.size(); ++i) pooled[i] = FromBFloat16(bits[i]);
    }
  }

 private:
  // The current device belongs to a thread, and calls may come from different threads.
  void UseDevice() const { Check(cudaSetDevice(options_.device), "choosing a GPU"); }

  void Set(std::span<const float> values, float* to) {
    UseDevice();
    CopyToDevice(values.data(), values.size_bytes(), to, compute_);
    compute_.Synchronize();
  }
  void Get(const float* from, std::span<float> values) {
    UseDevice();
    CopyToHost(from, values.size_bytes(), values.data(), compute_);
    compute_.Synchronize();
  }

  const StagedBatch& TakeBatch() {
    UseDevice();
    CHECK(begun_ - finished_ < 2);  // one of the two HostSteps is free
    CHECK(next_ >= 0);
    current_ = std::exchange(next_, -1);
    batches_[current_].arrived().Await(compute_.get());
    return batches_[current_];
  }

  void Forward(const StagedBatch& batch, const int64_t* step) {
    dense_.PackWeights();
    if (embeddings_) {
      embeddings_->Pool(batch.lookups(), dense_.features(), compute_);
    } else {
      const int64_t rows = options_.own_samples();
      const Precision precision = options_.model.precision;
      ConvertRows(rows, pooled_columns_, batch.pooled(), pooled_columns_, pooled_.as<void>(),
                  pooled_columns_, precision, compute_.get());
      CopyColumns(rows, pooled_columns_, pooled_.as<void>(), pooled_columns_,
                  static_cast<std::byte*>(dense_.features()) +
                      options_.model.embedding_dim * BytesPerValue(precision),
                  features_, precision, compute_.get());
    }
    dense_.ForwardDense(batch.dense(), step);
    dense_.ForwardFeatures(step);
  }

  // The tables' work, which is limited by memory, runs beside the dense part, which is limited by
  // products, wherever nothing waits for it.
  void LaunchStep(const StagedBatch& batch, int64_t global_batch) {
    StepMemory* const step = step_.as<StepMemory>();
    const auto after = [](const Event& event, const Stream& first, const Stream& then) {
      event.Record(first.get());
      event.Await(then.get());
    };
    after(fork_, compute_, tables_);
    embeddings_->Pool(batch.lookups(), dense_.features(), tables_);
    pooled_rows_.Record(tables_.get());
    embeddings_->Sort(batch.lookups(), tables_);
    dense_.PackWeights();
    dense_.ForwardDense(batch.dense(), &step->number);
    pooled_rows_.Await(compute_.get());
    dense_.ForwardFeatures(&step->number);
    dense_.BackwardToFeatures(batch.labels(), global_batch);
    after(fork_, compute_, tables_);
    embeddings_->Update(&step->sparse, batch.lookups(), dense_.d_features(), &step->tables_finite,
                        tables_);
    dense_.BackwardToDense();
    dense_.Update(&step->dense, &step->dense_finite);
    after(join_, tables_, compute_);
  }

  void SetStep(const DeviceStep& step) {
    const SparseOptimizerOptions& sparse = options_.sparse;
    const DenseOptimizerOptions& dense = options_.dense;
    const bool l2 = sparse.weight_decay_mode == WeightDecayMode::kL2;
    StepMemory* const memory = host_steps_[begun_ % 2].memory.as<StepMemory>();
    *memory = {
        .sparse = {.lr = static_cast<float>(step.sparse_learning_rate),
                   .epsilon = static_cast<float>(sparse.epsilon),
                   .l2 = l2 ? static_cast<float>(sparse.weight_decay) : 0.0f,
                   .kept = l2 ? 1.0f
                              : static_cast<float>(1 - step.sparse_learning_rate *
                                                           sparse.weight_decay)},
        .dense = {.lr = static_cast<float>(step.dense_learning_rate),
                  .epsilon = static_cast<float>(dense.epsilon),
                  .kept = static_cast<float>(1 - step.dense_learning_rate * dense.weight_decay),
                  .adam = AdamFactors(step.dense_learning_rate, dense.epsilon, dense.beta1,
                                      dense.beta2, step.dense_optimizer_steps)},
        .number = step.step};
    CopyToDevice(memory, sizeof(*memory), step_.as<void>(), compute_);
  }

  void CopyResults() {
    HostStep& host = host_steps_[begun_++ % 2];
    CopyToHost(dense_.logits(), host.logits.bytes(), host.logits.as<void>(), compute_);
    CopyToHost(step_.as<void>(), sizeof(StepMemory), host.memory.as<void>(), compute_);
    host.done.Record(compute_.get());
  }

  // The part of a step that is in the host's memory.
  struct HostStep {
    PinnedMemory memory;  // a StepMemory
    PinnedMemory logits;
    Event done;
  };

  DeviceModelOptions options_;
  DeviceFacts facts_;  // its initialization also chooses the device for the members below
  Stream compute_, copies_, tables_;
  Event fork_, join_, pooled_rows_;
  DenseEngine dense_;
  std::optional<EmbeddingEngine> embeddings_;
  int64_t features_ = 0, pooled_columns_ = 0;
  DeviceMemory pooled_, leaf_, step_;
  HostStep host_steps_[2];  // used alternately
  size_t begun_ = 0, finished_ = 0;
  PinnedMemory pinned_gradients_;
  StagedBatch batches_[2];
  CapturedLaunches steps_[2];
  const void* places_[2] = {nullptr, nullptr};
  int current_ = 0, next_ = -1;
};

}  // namespace
}  // namespace renzan::cuda

extern "C" {

__attribute__((visibility("default"))) const char* renzan_cuda_build() { return renzan::BuildId(); }

__attribute__((visibility("default"))) int renzan_cuda_count_devices() {
  return renzan::cuda::CountDevices();
}

__attribute__((visibility("default"))) void renzan_cuda_facts(int device,
                                                              renzan::DeviceFacts* facts) {
  *facts = renzan::cuda::FactsOf(device);
}

__attribute__((visibility("default"))) renzan::DeviceModel* renzan_cuda_make_model(
    const renzan::DeviceModelOptions* options) {
  return new renzan::cuda::CudaModel(*options);
}
}
