#pragma once

// An embedding table, and the blocks that it is divided into. A table is distributed over workers,
// and saved, in blocks. They are part of the configuration, because the arithmetic follows them: a
// bag is pooled block by block, and the partial sums are combined in the order of a fixed tree over
// the row blocks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/tensor/initial_values.h"

namespace renzan {

enum class Pooling { kSum, kMean };

// Rows of a shard are counted in 32 bits. A worker may have several shards of a table.
inline constexpr int64_t kMostShardRows = INT32_MAX;

struct TableSpec {
  std::string name;            // that of its feature, unless features share it
  int64_t num_embeddings = 0;  // rows
  int64_t embedding_dim = 0;   // columns
  Pooling pooling = Pooling::kSum;
  bool multi_hot = false;
  double pooling_factor = 1;  // mean lookups per sample, an estimate
  int row_blocks = 1;         // a power of two, at most num_embeddings
  int column_blocks = 1;      // divides embedding_dim
  // The features that look up its rows. 0: their rows are pooled, in one bag per sample. Otherwise
  // the positions of a sequence, each a bag of at most one row.
  std::vector<int64_t> features = {0};
  Distribution initial_values = Distribution::kUniform;
  std::optional<float> initial_bound;  // InitialRows::bound; nothing: √(1 / num_embeddings)
  double learning_rate_factor = 1;
  bool frozen = false;  // neither rows nor their states ever change
  // Whether lookups have weights, by which rows are multiplied; only of multi_hot tables. Those of
  // features without weights are 1.
  bool weighted = false;

  int64_t bags() const;  // per sample
  int64_t block_columns() const { return embedding_dim / column_blocks; }
  // Whether the sum of a bag's rows is divided by their number. A mean of weighted rows is a sum
  // already, because its weights were divided by their sum (embedding/ids_by_table.h).
  bool divides_by_length() const { return pooling == Pooling::kMean && !weighted; }
  // Row r belongs to row block r mod row_blocks, as its row r / row_blocks. So rows with
  // neighbouring numbers, which are often about equally popular, are in different blocks.
  int64_t rows_of_block(int block) const {
    return (num_embeddings - block + row_blocks - 1) / row_blocks;
  }
  int64_t rows_of_blocks(IndexRange blocks) const {
    int64_t rows = 0;
    for (int block = blocks.begin; block < blocks.end; ++block) rows += rows_of_block(block);
    return rows;
  }
};

// Enough row blocks that each takes at most 128 MiB in float32, but at most 1024.
int DefaultRowBlocks(int64_t num_embeddings, int64_t embedding_dim);

// The largest number of row blocks that a table with so many rows can have.
int MaxRowBlocks(int64_t num_embeddings);

}  // namespace renzan
