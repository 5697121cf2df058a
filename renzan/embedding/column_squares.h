#pragma once

// Row-wise Adagrad has one state for a whole row, wherever the row's columns are: for tables with
// several column blocks, the holders of these exchange the squares of the gradients.

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

  // Of a shard that takes part: Σ g² over its columns, for each distinct row of the batch in order,
  // to be filled in.
  std::vector<float>& of_held(size_t held) { return squares_[held]; }
  // Every rank calls it.
  void ExchangeThem();
  // After it: Σ g² / dim over all columns.
  const std::vector<float>& means_of_held(size_t held) const { return means_[held]; }

 private:
  // This worker's shard that has the same rows as `shard`, or -1.
  int HeldWithRowsOf(size_t shard) const;

  Communicator& comm_;
  const ShardMap& map_;
  std::vector<std::vector<float>> squares_, means_;  // by held shard
  // By rank: what of this worker's shards goes there, and what comes from there.
  std::vector<std::vector<size_t>> sent_, received_;
  std::vector<std::vector<float>> send_, recv_;  // by rank
};

}  // namespace renzan
