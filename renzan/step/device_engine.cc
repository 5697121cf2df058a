#include "renzan/step/device_engine.h"

#include <algorithm>
#include <cstddef>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/trace.h"
#include "renzan/cuda/load.h"
#include "renzan/planning/device_options.h"

namespace renzan {

int DeviceOf(const Communicator& comm) { return comm.local_rank() % CountDevices(); }

DeviceEngine::DeviceEngine(ModelState& state, Communicator& comm)
    : state_(state), global_batch_(state.spec().numerics.batch) {
  const ShardMap& map = state.embeddings().map();
  DeviceModelOptions options = DeviceOptionsOf(state.spec(), map);
  options.device = DeviceOf(comm);
  own_samples_ = options.own_samples();
  const DeviceFacts facts = FactsOfDevice(options.device);
  const DeviceNeed need = DeviceNeedOf(state.spec(), options, map, facts.free_bytes);
  // kOsError may make a launcher start again with fewer workers, which would not help if the GPU is
  // too small.
  if (need.bytes > facts.free_bytes)
    Fail(need.bytes > facts.total_bytes ? ErrorCode::kConfig : ErrorCode::kOsError,
         "device: cuda: without its tables, the model needs {} MiB of memory, but {} has {} MiB "
         "free: use a smaller training.batch_size, more workers with a GPU each, or "
         "numerics.precision: bf16",
         MebibytesOf(need.bytes), facts.name, facts.free_bytes >> 20);
  has_tables_ = need.has_tables();
  if (!has_tables_) options.tables.clear();
  if (comm.rank() == 0)
    LogInfo("{} ({}): {}", facts.name, facts.gpu_class,
            has_tables_
                ? "tables in its memory"
                : fmt::format("tables in the host's memory, because {}", need.why_not_tables));
  model_ = MakeDeviceModel(options);
  for (const TableInput& table : options.model.tables) pooled_columns_ += table.dim;
  if (!has_tables_) pooled_.resize(static_cast<size_t>(own_samples_ * pooled_columns_));
  offsets_.resize(map.held().size());
}

void DeviceEngine::UpdateDevice() {
  if (version_ == state_.version()) return;
  version_ = state_.version();
  model_->SetParameters(state_.parameters().span());
  if (!has_tables_) return;
  const TraceSpan span("copy model to the device");
  std::vector<DenseOptimizer::State>& states = state_.dense_optimizer().states();
  for (size_t i = 0; i < states.size(); ++i) model_->SetDenseState(i, states[i].values.span());
  std::vector<EmbeddingShard>& shards = state_.embeddings().shards();
  for (size_t t = 0; t < shards.size(); ++t) {
    RowStore& store = *shards[t].store;
    const size_t dim = static_cast<size_t>(store.layout().dim);
    const size_t width = static_cast<size_t>(store.layout().state_width);
    constexpr size_t kPieceBytes = size_t{1} << 26;
    const size_t piece = std::max<size_t>(1, kPieceBytes / (dim * sizeof(float)));
    std::vector<float> weights(piece * dim), values(piece * width);
    const size_t rows = static_cast<size_t>(store.num_rows());
    for (size_t first = 0; first < rows; first += piece) {
      const size_t n = std::min(piece, rows - first);
      state_.pool().ParallelRanges(n, [&](int, size_t begin, size_t end) {
        const int64_t at = static_cast<int64_t>(first + begin);
        const int64_t count = static_cast<int64_t>(end - begin);
        store.CopyWeights(at, count, reinterpret_cast<std::byte*>(weights.data() + begin * dim));
        store.CopyState(at, count, reinterpret_cast<std::byte*>(values.data() + begin * width));
      });
      model_->SetRows(t, static_cast<int64_t>(first), std::span(weights).first(n * dim),
                      std::span(values).first(n * width));
    }
  }
}

void DeviceEngine::UpdateHost() {
  if (!device_is_newer_) return;
  device_is_newer_ = false;
  const TraceSpan span("copy model to the host");
  model_->GetParameters(state_.parameters().span());
  std::vector<DenseOptimizer::State>& states = state_.dense_optimizer().states();
  for (size_t i = 0; i < states.size(); ++i) model_->GetDenseState(i, states[i].values.span());
  model_->TakeUpdatedRows([&](size_t table, std::span<const int32_t> rows,
                              std::span<const float> weights, std::span<const float> values) {
    EmbeddingShard& shard = state_.embeddings().shards()[table];
    const size_t dim = static_cast<size_t>(shard.dim());
    const size_t width = static_cast<size_t>(shard.store->layout().state_width);
    state_.pool().ParallelRanges(rows.size(), [&](int, size_t begin, size_t end) {
      size_t block = 0;
      for (size_t i = begin; i < end; ++i) {
        while (rows[i] >= shard.blocks[block].first_row + shard.blocks[block].num_rows) ++block;
        shard.blocks[block].BeforeUpdate(rows[i]);
        shard.store->SetWeights(rows[i], weights.subspan(i * dim, dim));
        shard.store->SetState(rows[i], values.subspan(i * width, width));
      }
    });
  });
}

void DeviceEngine::Copy(const DeviceBatch& batch) {
  model_->Stage(batch, [&](size_t n, FunctionRef<void(size_t)> task) {
    state_.pool().ParallelTasks(n, [&](int, size_t i) { task(i); });
  });
}

void DeviceEngine::Stage(const Batch& slice, const PreparedBatch& batch) {
  const TraceSpan span("copy batch");
  const ShardMap& map = state_.embeddings().map();
  DeviceBatch on_device = {.dense = slice.dense,
                           .labels = slice.labels(state_.spec().loss.tasks[0].label_column),
                           .pooled = {}};
  for (size_t held = 0; held < map.held().size(); ++held) {
    on_device.rows.push_back(batch.ids.of_held(held).rows);
    const std::vector<int32_t>& lengths = batch.ids.own_bags(map.held()[held]).lengths;
    std::vector<int32_t>& offsets = offsets_[held];
    offsets.clear();
    if (!lengths.empty()) {
      offsets.push_back(0);
      for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
    }
    on_device.offsets.push_back(offsets);
  }
  Copy(on_device);
  staged_ = &slice;
}

void DeviceEngine::BeginStep(const Batch& slice, const PreparedBatch& batch,
                             const DeviceStep& step) {
  UpdateDevice();
  if (staged_ != &slice) Stage(slice, batch);
  staged_ = nullptr;
  model_->BeginStep(global_batch_, step);
  device_is_newer_ = true;
}

void DeviceEngine::BeginPredict(const Batch& slice, const PreparedBatch& batch) {
  UpdateDevice();
  // The staged slice may be another batch at the same address.
  Stage(slice, batch);
  staged_ = nullptr;
  model_->BeginForward();
}

void DeviceEngine::StagePooled(const Batch& slice) {
  UpdateDevice();
  Copy({.dense = slice.dense,
        .labels = slice.labels(state_.spec().loss.tasks[0].label_column),
        .pooled = pooled_,
        .rows = {},
        .offsets = {}});
}

void DeviceEngine::BeginForwardAndBackward(const Batch& slice, int64_t step) {
  StagePooled(slice);
  model_->BeginForwardAndBackward(global_batch_, step);
}

void DeviceEngine::BeginPredict(const Batch& slice) {
  StagePooled(slice);
  model_->BeginForward();
}

void DeviceEngine::ReadGradients(std::span<const std::span<float>> dense) {
  model_->ReadGradients(pooled_, dense);
}

}  // namespace renzan
