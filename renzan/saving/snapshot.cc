#include "renzan/saving/snapshot.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/quantize.h"

namespace renzan {
namespace {

DType TypeOf(float) { return DType::kF32; }
DType TypeOf(int64_t) { return DType::kI64; }

// A tensor with a copy of the current values.
template <typename T>
TensorSource Copied(std::string key, std::vector<int64_t> shape, std::span<const T> values) {
  const auto copy = std::make_shared<const std::vector<T>>(values.begin(), values.end());
  return {std::move(key), std::move(shape), TypeOf(T{}),
          [copy](size_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), std::as_bytes(std::span(*copy)).data() + offset, out.size());
          }};
}

// Lists the rows of a set on first use by the writer, so that training does not wait for it.
class LazyRows {
 public:
  explicit LazyRows(RowSet set) : set_(std::move(set)) {}
  const RowSet& set() const { return set_; }
  const std::vector<int32_t>& list() {
    if (list_.empty()) list_ = set_.Rows();
    return list_;
  }

 private:
  RowSet set_;
  std::vector<int32_t> list_;
};

}  // namespace

BlockKey KeyOf(const EmbeddingShard& shard, const EmbeddingShard::Block& block) {
  return {.table = EscapeName(shard.table.name),
          .row_block = block.row_block,
          .row_blocks = shard.table.row_blocks,
          .column_block = shard.shard.column_block,
          .column_blocks = shard.table.column_blocks};
}

ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker) {
  const std::string key =
      fmt::format("{}{}.{}", kErrorFeedbackPrefix, virtual_worker, EscapeName(table.name));
  return {key + ".keys", key + ".residuals"};
}

std::vector<int64_t> StateShape(const ShardedEmbeddings& embeddings, const EmbeddingShard& shard,
                                const EmbeddingShard::Block& block) {
  const int64_t width = shard.store.layout().state_width;
  // A whole table of one column keeps the shape that it has always had.
  const bool is_column = shard.table.column_blocks > 1 && !embeddings.state_is_per_row();
  if (width == 1 && !is_column) return {block.num_rows};
  return {block.num_rows, width};
}

SnapshotBytes EstimateBytes(ModelState& model, const SnapshotOptions& options) {
  SnapshotBytes bytes;
  if (options.with_dense) {
    const size_t arrays = 1 + model.dense_optimizer().states().size();
    bytes.full = bytes.incremental = arrays * model.parameters().size() * sizeof(float);
  }
  const uint64_t residuals = model.embeddings().error_feedback().bytes();
  bytes.full += residuals;
  bytes.incremental += residuals;
  for (EmbeddingShard& shard : model.embeddings().shards()) {
    if (!model.embeddings().Saves(shard)) continue;
    const uint64_t row = static_cast<uint64_t>(shard.store.layout().row_bytes());
    const uint64_t state = static_cast<uint64_t>(shard.store.layout().state_bytes());
    const uint64_t dim = static_cast<uint64_t>(shard.dim());
    const uint64_t weights = options.quantize ? dim + 2 * sizeof(float) : row;
    bytes.full += static_cast<uint64_t>(shard.rows.size()) * (row + state);
    for (const EmbeddingShard::Block& block : shard.blocks)
      bytes.incremental +=
          static_cast<uint64_t>(block.dirty.size()) * (sizeof(int32_t) + weights + state);
  }
  return bytes;
}

uint64_t ModelSnapshot::File::bytes() const {
  uint64_t sum = 0;
  for (const TensorSource& tensor : tensors)
    sum += static_cast<uint64_t>(NumElements(tensor.shape)) * BytesOf(tensor.dtype);
  return sum;
}

ModelSnapshot::ModelSnapshot(ModelState& model, const SnapshotOptions& options)
    : model_(model), embeddings_(model.embeddings()) {
  if (options.with_dense) AddDense();
  AddErrorFeedback();
  for (EmbeddingShard& shard : embeddings_.shards()) {
    for (EmbeddingShard::Block& block : shard.blocks) {
      CHECK(!block.weights_view);
      if (!options.incremental)
        dirty_before_.push_back(std::exchange(block.dirty, RowSet(block.num_rows)));
      if (!embeddings_.Saves(shard)) continue;
      if (options.incremental) {
        AddDirtyRows(shard, block, options.quantize);
      } else {
        AddWholeBlock(shard, block);
      }
    }
  }
}

ModelSnapshot::~ModelSnapshot() { Release(); }

void ModelSnapshot::Release() {
  for (EmbeddingShard& shard : embeddings_.shards()) {
    for (EmbeddingShard::Block& block : shard.blocks) {
      block.weights_view.reset();
      block.state_view.reset();
    }
  }
}

void ModelSnapshot::Abandon() {
  if (dirty_before_.empty()) return;
  size_t next = 0;
  for (EmbeddingShard& shard : embeddings_.shards())
    for (EmbeddingShard::Block& block : shard.blocks) block.dirty.AddAll(dirty_before_[next++]);
  dirty_before_.clear();
}

void ModelSnapshot::AddDense() {
  File file{.name = "dense.safetensors", .tensors = {}};
  for (const Parameter& parameter : model_.model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    file.tensors.push_back(Copied<float>(parameter.name, parameter.shape,
                                         model_.parameters().span().subspan(offset, size)));
    for (DenseOptimizer::State& state : model_.dense_optimizer().states())
      file.tensors.push_back(Copied<float>(parameter.name + "/" + state.name, parameter.shape,
                                           state.values.span().subspan(offset, size)));
  }
  files_.push_back(std::move(file));
}

// A file for each virtual worker, which its worker writes.
void ModelSnapshot::AddErrorFeedback() {
  ShardedEmbeddings& embeddings = embeddings_;
  if (!embeddings.error_feedback().enabled()) return;
  const std::vector<TableSpec>& tables = embeddings.map().tables();
  const IndexRange own = embeddings.map().own();
  for (int v = own.begin; v < own.end; ++v) {
    File file{.name = fmt::format("error_feedback.{}.safetensors", v), .tensors = {}};
    for (size_t t = 0; t < tables.size(); ++t) {
      const ErrorFeedback::Slots& slots = embeddings.error_feedback().of(v, t);
      const ErrorFeedbackKeys key = KeysOfErrorFeedback(tables[t], v);
      file.tensors.push_back(Copied<int64_t>(key.keys, slots.keys_shape(), slots.keys));
      file.tensors.push_back(
          Copied<float>(key.residuals, slots.residuals_shape(), slots.residuals.span()));
    }
    files_.push_back(std::move(file));
  }
}

void ModelSnapshot::View(EmbeddingShard& shard, const RowSet* only, EmbeddingShard::Block* block) {
  RowStore& store = shard.store;
  const int64_t rows = block->num_rows, begin = block->first_row;
  block->weights_view = std::make_shared<CopyOnWrite>(
      [&store, begin](int64_t first, int64_t n, std::byte* out) {
        store.CopyWeights(begin + first, n, out);
      },
      rows, store.layout().row_bytes(), only, &copied_bytes_);
  if (store.layout().state_width == 0) return;
  block->state_view = std::make_shared<CopyOnWrite>(
      [&store, begin](int64_t first, int64_t n, std::byte* out) {
        store.CopyState(begin + first, n, out);
      },
      rows, store.layout().state_bytes(), only, &copied_bytes_);
}

void ModelSnapshot::AddWholeBlock(EmbeddingShard& shard, EmbeddingShard::Block& block) {
  const std::string key = KeyOf(shard, block).Key() + ".weight";
  File file{.name = KeyOf(shard, block).FileStem() + ".safetensors", .tensors = {}};
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, shape, dtype, [view](size_t, std::span<std::byte> out) { view->ReadNext(out); }});
  };
  View(shard, nullptr, &block);
  add(key, {block.num_rows, shard.dim()}, DTypeOf(shard.store.layout().type), block.weights_view);
  if (block.state_view) {
    add(fmt::format("{}/{}", key, embeddings_.state_name()), StateShape(embeddings_, shard, block),
        DType::kF32, block.state_view);
  }
  files_.push_back(std::move(file));
}

void ModelSnapshot::AddDirtyRows(EmbeddingShard& shard, EmbeddingShard::Block& block,
                                 bool quantize) {
  const auto dirty = std::make_shared<LazyRows>(block.dirty);
  const int64_t n = dirty->set().size(), dim = shard.dim();
  const std::string key = KeyOf(shard, block).Key(), stem = KeyOf(shard, block).FileStem();
  File file{.name = stem + ".safetensors", .tensors = {}};
  file.tensors.push_back(
      {key + ".rows", {n}, DType::kI32, [dirty](size_t offset, std::span<std::byte> out) {
         std::memcpy(out.data(), reinterpret_cast<const std::byte*>(dirty->list().data()) + offset,
                     out.size());
       }});
  View(shard, &dirty->set(), &block);
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, std::move(shape), dtype,
         [view, dirty](size_t, std::span<std::byte> out) { view->ReadNext(dirty->list(), out); }});
  };
  const FloatType type = shard.store.layout().type;
  if (quantize) {
    const auto encoded = std::make_shared<std::vector<std::byte>>(
        static_cast<size_t>(shard.store.layout().row_bytes()));
    QuantizedSources rows =
        QuantizeRows(key + ".weight", n, dim,
                     [view = block.weights_view, dirty, type, encoded](std::span<float> row) {
                       view->ReadNext(dirty->list(), *encoded);
                       Decode(type, encoded->data(), row);
                     });
    files_.push_back({stem + ".q8.safetensors", {std::move(rows.codes)}});
    for (TensorSource& source : rows.scales) file.tensors.push_back(std::move(source));
  } else {
    add(key + ".weight", {n, dim}, DTypeOf(type), block.weights_view);
  }
  if (block.state_view) {
    std::vector<int64_t> shape = StateShape(embeddings_, shard, block);
    shape[0] = n;
    add(fmt::format("{}.weight/{}", key, embeddings_.state_name()), shape, DType::kF32,
        block.state_view);
  }
  files_.push_back(std::move(file));
}

}  // namespace renzan
