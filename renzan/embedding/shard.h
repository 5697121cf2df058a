#pragma once

// A shard on the worker that holds it: its rows, their optimizer states, and the change tracking
// that checkpoints need.

#include <memory>
#include <optional>
#include <vector>

#include "renzan/embedding/copy_on_write.h"
#include "renzan/embedding/idle_rows.h"
#include "renzan/embedding/row_set.h"
#include "renzan/embedding/row_store.h"
#include "renzan/embedding/shard_rows.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/tensor/initial_values.h"

namespace renzan {

enum class InitialValues {
  kDraw,  // from the table's distribution, keyed by (seed, table, row, column)
  kZero,  // for rows that will be loaded
};

struct EmbeddingShard {
  // `make_store`: null for MemoryRowStore.
  EmbeddingShard(const TableSpec& table, const Shard& shard, FloatType type,
                 const SparseOptimizerOptions& optimizer, InitialValues initial_values,
                 uint64_t seed, ThreadPool* pool = nullptr,
                 const MakeRowStore& make_store = nullptr);

  // A block of the table, which is saved as a unit, whichever shard it is part of.
  struct Block {
    int row_block = 0;                    // of the table
    int64_t first_row = 0, num_rows = 0;  // of the shard
    // Rows of the block that were updated since the last full checkpoint.
    RowSet dirty;
    // Of the rows that are not dirty, those that may differ from their initial values; nothing if
    // all may.
    std::optional<RowSet> trained;
    // Set while a checkpoint is being written: snapshots of the block's weights and of each of its
    // states at the checkpoint's step.
    std::shared_ptr<CopyOnWrite> weights_view;
    std::vector<std::shared_ptr<CopyOnWrite>> state_views;

    // Call it before a row of the shard changes. Threads may call it concurrently for different
    // rows.
    void BeforeUpdate(int64_t row) {
      dirty.Add(row - first_row);
      if (weights_view) weights_view->BeforeWrite(row - first_row);
      for (const auto& view : state_views) view->BeforeWrite(row - first_row);
    }
  };

  int64_t dim() const { return store->layout().dim; }
  int64_t first_column() const { return shard.column_block * dim(); }

  TableSpec table;
  Shard shard;
  ShardRows rows;
  InitialRows initial;
  std::unique_ptr<RowStore> store;  // of rows.size() rows
  uint64_t rounding_key;            // for updates of 16-bit rows
  std::vector<Block> blocks;
  std::optional<IdleRows> idle;  // if rows move that no sample looks up
};

}  // namespace renzan
