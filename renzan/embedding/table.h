#pragma once

// The rows of one embedding table on the worker that owns it, and the state of its optimizer.

#include <string>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/thread_pool.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/plan/placement.h"

namespace renzan {

struct EmbeddingTable {
  // Rows are drawn from U(±√(1/num_embeddings)), keyed by (seed, table, row, column).
  EmbeddingTable(const TableSpec& spec, const SparseOptimizerOptions& optimizer, uint64_t seed,
                 ThreadPool& pool);

  TableSpec spec;
  AlignedBuffer weights;  // [num_embeddings, embedding_dim]
  AlignedBuffer state;    // per optimizer: empty, [rows, dim] or [rows]
};

}  // namespace renzan
