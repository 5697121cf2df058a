#pragma once

// The rows of one embedding table on the worker that owns it, its optimizer state, and the change
// tracking that checkpoints need.

#include <memory>
#include <string>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/thread_pool.h"
#include "renzan/embedding/copy_on_write.h"
#include "renzan/embedding/row_set.h"
#include "renzan/embedding/row_storage.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/plan/placement.h"

namespace renzan {

enum class InitialValues {
  kDraw,  // from U(±√(1/num_embeddings)), keyed by (seed, table, row, column)
  kZero,  // for rows that will be loaded
};

struct EmbeddingTable {
  EmbeddingTable(const TableSpec& spec, FloatType type, const SparseOptimizerOptions& optimizer,
                 InitialValues initial_values, uint64_t seed, ThreadPool& pool);

  TableSpec spec;
  RowStorage weights;     // [num_embeddings, embedding_dim]
  AlignedBuffer state;    // per optimizer: empty, [rows, dim] or [rows]
  uint64_t rounding_key;  // of updates, for rows of 16 bits

  // Rows that were updated since the last full checkpoint.
  RowSet dirty;
  // Set while a checkpoint is being written: snapshots of the weights and the state at its step.
  std::shared_ptr<CopyOnWrite> weights_view, state_view;

  // Call it before a row changes. Threads may call it concurrently for different rows.
  void BeforeUpdate(int64_t row) {
    dirty.Add(row);
    if (weights_view) weights_view->BeforeWrite(row);
    if (state_view) state_view->BeforeWrite(row);
  }
};

}  // namespace renzan
