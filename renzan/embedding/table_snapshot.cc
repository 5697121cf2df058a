#include "renzan/embedding/table_snapshot.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/checkpoint/quantize.h"
#include "renzan/embedding/table_tensors.h"

namespace renzan {
namespace {

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

SnapshotBytes EstimateTableBytes(ShardedEmbeddings& embeddings, bool quantize) {
  const uint64_t residuals = embeddings.error_feedback().bytes();
  SnapshotBytes bytes{.full = residuals, .incremental = residuals};
  for (EmbeddingShard& shard : embeddings.shards()) {
    if (!embeddings.Saves(shard)) continue;
    const uint64_t row = static_cast<uint64_t>(shard.store->layout().row_bytes());
    const uint64_t state = static_cast<uint64_t>(shard.store->layout().state_bytes());
    const uint64_t dim = static_cast<uint64_t>(shard.dim());
    const uint64_t weights = quantize ? dim + 2 * sizeof(float) : row;
    bytes.full += static_cast<uint64_t>(shard.rows.size()) * (row + state);
    for (const EmbeddingShard::Block& block : shard.blocks)
      bytes.incremental +=
          static_cast<uint64_t>(block.dirty.size()) * (sizeof(int32_t) + weights + state);
  }
  return bytes;
}

TableSnapshot::TableSnapshot(ShardedEmbeddings& embeddings, const TableSnapshotOptions& options)
    : embeddings_(embeddings) {
  try {
    Take(options);
  } catch (...) {
    Release();
    Abandon();
    throw;
  }
}

void TableSnapshot::Take(const TableSnapshotOptions& options) {
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

TableSnapshot::~TableSnapshot() { Release(); }

void TableSnapshot::Release() {
  for (EmbeddingShard::Block* block : viewed_) {
    block->weights_view.reset();
    block->state_view.reset();
  }
  viewed_.clear();
}

void TableSnapshot::Abandon() {
  auto before = dirty_before_.begin();
  for (EmbeddingShard& shard : embeddings_.shards())
    for (EmbeddingShard::Block& block : shard.blocks)
      if (before != dirty_before_.end()) block.dirty.AddAll(*before++);
  dirty_before_.clear();
}

// One file per virtual worker, written by the worker to which it is assigned.
void TableSnapshot::AddErrorFeedback() {
  if (!embeddings_.error_feedback().enabled()) return;
  const std::vector<TableSpec>& tables = embeddings_.map().tables();
  const IndexRange own = embeddings_.map().own();
  for (int v = own.begin; v < own.end; ++v) {
    TensorFile file{.name = fmt::format("error_feedback.{}.safetensors", v), .tensors = {}};
    for (size_t t = 0; t < tables.size(); ++t) {
      const ErrorFeedback::Slots& slots = embeddings_.error_feedback().of(v, t);
      const ErrorFeedbackKeys key = KeysOfErrorFeedback(tables[t], v);
      file.tensors.push_back(SourceOfCopy(key.keys, slots.keys_shape(), slots.keys));
      file.tensors.push_back(
          SourceOfCopy(key.residuals, slots.residuals_shape(), slots.residuals.span()));
    }
    files_.push_back(std::move(file));
  }
}

void TableSnapshot::View(EmbeddingShard& shard, const RowSet* only, EmbeddingShard::Block* block) {
  RowStore& store = *shard.store;
  const int64_t rows = block->num_rows, begin = block->first_row;
  viewed_.push_back(block);
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

void TableSnapshot::AddWholeBlock(EmbeddingShard& shard, EmbeddingShard::Block& block) {
  const std::string key = WeightKey(shard, block);
  TensorFile file{.name = KeyOf(shard, block).FileStem() + ".safetensors", .tensors = {}};
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, shape, dtype, [view](size_t, std::span<std::byte> out) { view->ReadNext(out); }});
  };
  View(shard, nullptr, &block);
  add(key, {block.num_rows, shard.dim()}, DTypeOf(shard.store->layout().type), block.weights_view);
  if (block.state_view) {
    const SparseOptimizerType optimizer = embeddings_.optimizer();
    add(StateKey(optimizer, shard, block), StateShape(optimizer, shard, block.num_rows),
        DType::kF32, block.state_view);
  }
  files_.push_back(std::move(file));
}

void TableSnapshot::AddDirtyRows(EmbeddingShard& shard, EmbeddingShard::Block& block,
                                 bool quantize) {
  const auto dirty = std::make_shared<LazyRows>(block.dirty);
  const int64_t n = dirty->set().size(), dim = shard.dim();
  const std::string key = KeyOf(shard, block).Key(), stem = KeyOf(shard, block).FileStem();
  TensorFile file{.name = stem + ".safetensors", .tensors = {}};
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
  const FloatType type = shard.store->layout().type;
  if (quantize) {
    const auto encoded = std::make_shared<std::vector<std::byte>>(
        static_cast<size_t>(shard.store->layout().row_bytes()));
    QuantizedSources rows =
        QuantizeRows(WeightKey(shard, block), n, dim,
                     [view = block.weights_view, dirty, type, encoded](std::span<float> row) {
                       view->ReadNext(dirty->list(), *encoded);
                       Decode(type, encoded->data(), row);
                     });
    files_.push_back({stem + ".q8.safetensors", {std::move(rows.codes)}});
    for (TensorSource& source : rows.scales) file.tensors.push_back(std::move(source));
  } else {
    add(WeightKey(shard, block), {n, dim}, DTypeOf(type), block.weights_view);
  }
  if (block.state_view) {
    const SparseOptimizerType optimizer = embeddings_.optimizer();
    add(StateKey(optimizer, shard, block), StateShape(optimizer, shard, n), DType::kF32,
        block.state_view);
  }
  files_.push_back(std::move(file));
}

}  // namespace renzan
