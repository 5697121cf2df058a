#include "renzan/embedding/load_tables.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/function_ref.h"
#include "renzan/base/largest_first.h"
#include "renzan/embedding/initial_block.h"
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

// Finds the rows of a block that differ from their initial values while they are loaded. Stops when
// they are too many to be saved sparsely.
class TrainedRows {
 public:
  TrainedRows(const EmbeddingShard& shard, EmbeddingShard::Block& block)
      : trained_(block.trained), initial_(shard, block) {
    trained_ = RowSet(block.num_rows);
    most_ = block.num_rows / 4;
  }

  void AddWeights(int64_t first, std::span<const float> weights, int64_t dim) {
    const int64_t n = std::ssize(weights) / dim;
    if (trained_) initial_.Draw(first, n);
    for (int64_t i = 0; i < n && trained_; ++i)
      if (initial_.WeightsDiffer(
              first + i, weights.subspan(static_cast<size_t>(i * dim), static_cast<size_t>(dim))))
        Add(first + i);
  }
  void AddStates(int64_t first, std::span<const float> states, int64_t width) {
    for (int64_t i = 0; i < std::ssize(states) / width && trained_; ++i)
      if (initial_.StateDiffers(
              states.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width))) &&
          !trained_->Contains(first + i))
        Add(first + i);
  }

 private:
  void Add(int64_t row) {
    trained_->Add(row);
    if (++found_ > most_) trained_.reset();
  }

  std::optional<RowSet>& trained_;
  InitialBlock initial_;
  int64_t most_ = 0, found_ = 0;
};

// `trained`: null if nobody asks.
void LoadBlock(CheckpointReader& reader, const EmbeddingShard::Block& block, Values allowed,
               EmbeddingShard* shard, TrainedRows* trained = nullptr) {
  const std::string key = WeightKey(*shard, block);
  reader.Expect(key, {block.num_rows, shard->dim()});
  LoadRows(reader, key, block.num_rows, shard->dim(), allowed,
           [&](int64_t first, std::span<const float> rows) {
             shard->store->SetWeights(block.first_row + first, rows);
             if (trained != nullptr) trained->AddWeights(first, rows, shard->dim());
           });
}

void LoadStates(CheckpointReader& reader, SparseOptimizerType optimizer,
                const EmbeddingShard::Block& block, EmbeddingShard* shard, TrainedRows* trained) {
  for (const StateTensor& state : StateTensors(optimizer, *shard, block, block.num_rows)) {
    reader.Expect(state.key, state.shape);
    LoadRows(reader, state.key, block.num_rows, state.part.width, Values::kFinite,
             [&](int64_t first, std::span<const float> values) {
               shard->store->SetStatePart(block.first_row + first, state.part, values);
               if (trained != nullptr) trained->AddStates(first, values, state.part.width);
             });
  }
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
                 const std::string key = WeightKey(shard, block);
                 const auto sparse = own.FindSparseTable(key);
                 // Another seed or accumulator may be configured now.
                 const bool is_known = sparse && sparse->initial == shard.initial;
                 std::optional<TrainedRows> trained;
                 if (!is_known) trained.emplace(shard, block);
                 LoadBlock(own, block, Values::kFinite, &shard, trained ? &*trained : nullptr);
                 LoadStates(own, optimizer, block, &shard, trained ? &*trained : nullptr);
                 // The next increment must hold every row that differs from the base.
                 block.dirty = RowSet(block.num_rows);
                 for (const int32_t row : own.ReplacedRows(key)) block.dirty.Add(row);
                 if (!is_known) return;
                 block.trained = RowSet(block.num_rows);
                 for (const int32_t row : sparse->rows) block.trained->Add(row);
               });
  embeddings->RowsWereSet();
}

}  // namespace renzan
