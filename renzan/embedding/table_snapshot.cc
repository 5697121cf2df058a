#include "renzan/embedding/table_snapshot.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/checkpoint/quantize.h"
#include "renzan/embedding/table_tensors.h"

namespace renzan {

// Lists the rows of a set on first use by the writer, so that training does not wait for it.
class TableSnapshot::LazyRows {
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

namespace {

constexpr int64_t kRowNumberBytes = sizeof(int32_t);

// Of a block in a full snapshot, and whether it is sparse.
struct BlockBytes {
  int64_t bytes = 0;
  bool sparse = false;
};
BlockBytes FullBytes(const EmbeddingShard& shard, const EmbeddingShard::Block& block,
                     const TableSnapshotOptions& options) {
  const RowLayout& layout = shard.store->layout();
  const int64_t row = layout.row_bytes() + layout.state_bytes();
  const int64_t all = block.num_rows * row;
  if (!block.trained || !options.sparse) return {all, false};
  const int64_t trained = block.trained->SizeOfUnion(block.dirty) * (kRowNumberBytes + row);
  const int64_t table = shard.table.num_embeddings * shard.table.column_blocks * row;
  const bool sparse = IsSavedSparsely(trained, all, table, options.sparse_from_bytes);
  return {sparse ? trained : all, sparse};
}

}  // namespace

SnapshotBytes EstimateTableBytes(ShardedEmbeddings& embeddings,
                                 const TableSnapshotOptions& options) {
  const uint64_t residuals = embeddings.error_feedback().bytes();
  SnapshotBytes bytes{.full = residuals, .incremental = residuals};
  for (EmbeddingShard& shard : embeddings.shards()) {
    if (!embeddings.Saves(shard)) continue;
    const uint64_t row = static_cast<uint64_t>(shard.store->layout().row_bytes());
    const uint64_t state = static_cast<uint64_t>(shard.store->layout().state_bytes());
    const uint64_t dim = static_cast<uint64_t>(shard.dim());
    const uint64_t weights = options.quantize ? dim + 2 * sizeof(float) : row;
    for (const EmbeddingShard::Block& block : shard.blocks) {
      bytes.full += static_cast<uint64_t>(FullBytes(shard, block, options).bytes);
      bytes.incremental +=
          static_cast<uint64_t>(block.dirty.size()) * (kRowNumberBytes + weights + state);
    }
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
      const bool saves = embeddings_.Saves(shard);
      if (options.incremental) {
        if (saves) AddRows(shard, block, std::make_shared<LazyRows>(block.dirty), options.quantize);
        continue;
      }
      const bool sparse = FullBytes(shard, block, options).sparse;
      if (sparse) {
        block.trained->AddAll(block.dirty);
      } else {
        block.trained.reset();
      }
      dirty_before_.push_back(std::exchange(block.dirty, RowSet(block.num_rows)));
      if (saves) sparse ? AddSparseBlock(shard, block) : AddWholeBlock(shard, block);
    }
  }
}

TableSnapshot::~TableSnapshot() { Release(); }

void TableSnapshot::Release() {
  for (EmbeddingShard::Block* block : viewed_) {
    block->weights_view.reset();
    block->state_views.clear();
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
  for (const StateTensor& state : StateTensors(embeddings_.optimizer(), shard, *block, rows))
    block->state_views.push_back(std::make_shared<CopyOnWrite>(
        [&store, begin, part = state.part](int64_t first, int64_t n, std::byte* out) {
          store.CopyStatePart(begin + first, n, part, out);
        },
        rows, state.part.width * static_cast<int64_t>(sizeof(float)), only, &copied_bytes_));
}

// Calls add(key, shape, type, view) for each state of `rows` rows of a block.
template <class Add>
void TableSnapshot::AddStates(const EmbeddingShard& shard, const EmbeddingShard::Block& block,
                              int64_t rows, const Add& add) {
  const std::vector<StateTensor> states = StateTensors(embeddings_.optimizer(), shard, block, rows);
  for (size_t i = 0; i < states.size(); ++i)
    add(states[i].key, states[i].shape, DType::kF32, block.state_views[i]);
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
  AddStates(shard, block, block.num_rows, add);
  files_.push_back(std::move(file));
}

void TableSnapshot::AddSparseBlock(EmbeddingShard& shard, EmbeddingShard::Block& block) {
  const auto rows = std::make_shared<LazyRows>(*block.trained);
  AddRows(shard, block, rows, /*quantize=*/false);
  std::vector<TensorInfo> whole = {{WeightKey(shard, block),
                                    {block.num_rows, shard.dim()},
                                    DTypeOf(shard.store->layout().type)}};
  for (const StateTensor& state :
       StateTensors(embeddings_.optimizer(), shard, block, block.num_rows))
    whole.push_back({state.key, state.shape, DType::kF32});
  files_.back().sparse = {.initial = shard.initial,
                          .tensors = std::move(whole),
                          .rows = [rows]() -> std::span<const int32_t> { return rows->list(); }};
}

void TableSnapshot::AddRows(EmbeddingShard& shard, EmbeddingShard::Block& block,
                            const std::shared_ptr<LazyRows>& rows, bool quantize) {
  const int64_t n = rows->set().size(), dim = shard.dim();
  const std::string key = KeyOf(shard, block).Key(), stem = KeyOf(shard, block).FileStem();
  TensorFile file{.name = stem + ".safetensors", .tensors = {}};
  file.tensors.push_back(
      {key + ".rows", {n}, DType::kI32, [rows](size_t offset, std::span<std::byte> out) {
         std::memcpy(out.data(), reinterpret_cast<const std::byte*>(rows->list().data()) + offset,
                     out.size());
       }});
  View(shard, &rows->set(), &block);
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, DType dtype,
                       const std::shared_ptr<CopyOnWrite>& view) {
    file.tensors.push_back(
        {name, std::move(shape), dtype,
         [view, rows](size_t, std::span<std::byte> out) { view->ReadNext(rows->list(), out); }});
  };
  const FloatType type = shard.store->layout().type;
  if (quantize) {
    const auto encoded = std::make_shared<std::vector<std::byte>>(
        static_cast<size_t>(shard.store->layout().row_bytes()));
    QuantizedSources sources =
        QuantizeRows(WeightKey(shard, block), n, dim,
                     [view = block.weights_view, rows, type, encoded](std::span<float> row) {
                       view->ReadNext(rows->list(), *encoded);
                       Decode(type, encoded->data(), row);
                     });
    files_.push_back({stem + ".q8.safetensors", {std::move(sources.codes)}});
    for (TensorSource& source : sources.scales) file.tensors.push_back(std::move(source));
  } else {
    add(WeightKey(shard, block), {n, dim}, DTypeOf(type), block.weights_view);
  }
  AddStates(shard, block, n, add);
  files_.push_back(std::move(file));
}

}  // namespace renzan
