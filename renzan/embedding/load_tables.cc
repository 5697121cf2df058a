#include "renzan/embedding/load_tables.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/function_ref.h"
#include "renzan/base/largest_first.h"
#include "renzan/embedding/table_tensors.h"
#include "renzan/optim/finite.h"

namespace renzan {
namespace {

enum class Values { kAny, kFinite };

// Reads a tensor [rows, width] piece by piece, and calls set(first row, values).
void LoadRows(CheckpointReader& reader, const std::string& key, int64_t rows, int64_t width,
              Values allowed, FunctionRef<void(int64_t, std::span<const float>)> set) {
  const int64_t rows_at_once = std::max<int64_t>(1, (1 << 16) / width);
  std::vector<float> piece(static_cast<size_t>(rows_at_once * width));
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t n = std::min(rows_at_once, rows - first);
    const auto values = std::span(piece).first(static_cast<size_t>(n * width));
    reader.Read(key, first * width, values);
    if (allowed == Values::kFinite) reader.CheckFinite(key, AllFinite(values));
    set(first, values);
  }
}

void LoadBlock(CheckpointReader& reader, const EmbeddingShard::Block& block, Values allowed,
               EmbeddingShard* shard) {
  const std::string key = WeightKey(*shard, block);
  reader.Expect(key, {block.num_rows, shard->dim()});
  LoadRows(reader, key, block.num_rows, shard->dim(), allowed,
           [&](int64_t first, std::span<const float> rows) {
             shard->store->SetWeights(block.first_row + first, rows);
           });
}

void LoadState(CheckpointReader& reader, SparseOptimizerType optimizer,
               const EmbeddingShard::Block& block, EmbeddingShard* shard) {
  if (shard->store->layout().state_width == 0) return;
  const std::string key = StateKey(optimizer, *shard, block);
  reader.Expect(key, StateShape(optimizer, *shard, block.num_rows));
  LoadRows(reader, key, block.num_rows, shard->store->layout().state_width, Values::kFinite,
           [&](int64_t first, std::span<const float> state) {
             shard->store->SetState(block.first_row + first, state);
           });
}

// Loads the residuals of the virtual workers that are now assigned to this worker.
void LoadErrorFeedback(CheckpointReader& reader, ShardedEmbeddings* embeddings) {
  if (!embeddings->error_feedback().enabled()) return;
  const std::vector<TableSpec>& tables = embeddings->map().tables();
  const IndexRange own = embeddings->map().own();
  for (int v = own.begin; v < own.end; ++v)
    for (size_t t = 0; t < tables.size(); ++t) {
      ErrorFeedback::Slots& slots = embeddings->error_feedback().of(v, t);
      const ErrorFeedbackKeys key = KeysOfErrorFeedback(tables[t], v);
      reader.Expect(key.keys, slots.keys_shape());
      slots.keys = reader.ReadI64(key.keys);
      reader.Read(key.residuals, slots.residuals_shape(), slots.residuals.span());
      reader.CheckFinite(key.residuals, AllFinite(slots.residuals.span()));
    }
}

}  // namespace

void ForEachBlock(
    CheckpointReader& reader, std::span<EmbeddingShard> shards, ThreadPool& pool,
    FunctionRef<void(CheckpointReader&, EmbeddingShard&, EmbeddingShard::Block&)> body) {
  // Readers are not thread-safe. A file is verified by the reader that uses it.
  std::vector<std::unique_ptr<CheckpointReader>> others(static_cast<size_t>(pool.num_threads()));
  struct Place {
    EmbeddingShard* shard;
    EmbeddingShard::Block* block;
  };
  std::vector<Place> blocks;
  for (EmbeddingShard& shard : shards)
    for (EmbeddingShard::Block& block : shard.blocks) blocks.push_back({&shard, &block});
  const std::vector<size_t> order = LargestFirst(blocks.size(), [&](size_t i) {
    return static_cast<size_t>(blocks[i].block->num_rows * blocks[i].shard->dim());
  });
  const auto visit = [&](int thread, const Place& place) {
    if (thread == 0) return body(reader, *place.shard, *place.block);
    std::unique_ptr<CheckpointReader>& own = others[static_cast<size_t>(thread)];
    if (own == nullptr) {
      own = std::make_unique<CheckpointReader>(reader.dir());
      if (own->manifest().manifest_sha256 != reader.manifest().manifest_sha256)
        Fail(ErrorCode::kTempFail, "{} was replaced while it was read: try again", reader.dir());
    }
    body(*own, *place.shard, *place.block);
  };
  std::vector<std::optional<Error>> errors(blocks.size());
  pool.ParallelTasks(blocks.size(), [&](int thread, size_t i) {
    try {
      visit(thread, blocks[order[i]]);
    } catch (const Error& error) {
      errors[order[i]] = error;
    }
  });
  // A block that could not be read may be valid, so its error takes precedence over corruption
  // elsewhere.
  const std::optional<Error>* first = nullptr;
  for (const std::optional<Error>& error : errors)
    if (error && (first == nullptr ||
                  ((*first)->code() == ErrorCode::kData && error->code() != ErrorCode::kData)))
      first = &error;
  if (first != nullptr) throw **first;
}

void LoadWeights(CheckpointReader& reader, std::span<EmbeddingShard> shards, ThreadPool& pool) {
  ForEachBlock(reader, shards, pool,
               [&](CheckpointReader& own, EmbeddingShard& shard, EmbeddingShard::Block& block) {
                 LoadBlock(own, block, Values::kAny, &shard);
               });
}

void LoadTables(CheckpointReader& reader, ShardedEmbeddings* embeddings, ThreadPool& pool) {
  LoadErrorFeedback(reader, embeddings);
  const SparseOptimizerType optimizer = embeddings->optimizer();
  ForEachBlock(reader, embeddings->shards(), pool,
               [&](CheckpointReader& own, EmbeddingShard& shard, EmbeddingShard::Block& block) {
                 LoadBlock(own, block, Values::kFinite, &shard);
                 LoadState(own, optimizer, block, &shard);
                 // The next increment must hold every row that differs from the base.
                 const std::string key = WeightKey(shard, block);
                 block.dirty = RowSet(block.num_rows);
                 for (const int32_t row : own.ReplacedRows(key)) block.dirty.Add(row);
                 block.trained.reset();
                 const auto sparse = own.FindSparseTable(key);
                 // Another seed or accumulator may be configured now.
                 if (!sparse || sparse->initial != shard.initial) return;
                 block.trained = RowSet(block.num_rows);
                 for (const int32_t row : sparse->rows) block.trained->Add(row);
               });
}

}  // namespace renzan
