#pragma once

// Row-wise Adagrad keeps one state per row, even if the row's columns are on several workers. For
// tables with several column blocks, the holders of the blocks exchange sums of squared gradients.

#include <cstddef>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/embedding/shard_map.h"

namespace renzan {

class ColumnSquares {
 public:
  // The map must outlive it.
  ColumnSquares(Communicator& comm, const ShardMap& map);

  // Whether this worker's i-th shard takes part.
  bool Needs(size_t held) const { return map_.table_of(map_.held()[held]).column_blocks > 1; }

  // For a shard that takes part: Σ g² over its columns, one value per distinct row of the batch, in
  // row order. The caller fills it in before ExchangeThem().
  std::vector<float>& of_held(size_t held) { return squares_[held]; }
  // Every rank calls it.
  void ExchangeThem();
  // After ExchangeThem(): Σ g² / dim over all columns, one value per distinct row.
  const std::vector<float>& means_of_held(size_t held) const { return means_[held]; }

 private:
  // This worker's shard that has the same rows as `shard`, or -1.
  int HeldWithRowsOf(size_t shard) const;

  Communicator& comm_;
  const ShardMap& map_;
  std::vector<std::vector<float>> squares_, means_;  // by held shard
  // By rank: the shards whose squares this worker sends there, and those it receives from there.
  std::vector<std::vector<size_t>> sent_, received_;
  std::vector<std::vector<float>> send_, recv_;  // by rank
};

}  // namespace renzan
