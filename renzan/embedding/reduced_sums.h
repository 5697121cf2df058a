#pragma once

// The gradients of small replicated shards, summed by row over all workers' samples, in the order
// of RowGradients (kernels.h). A row that a virtual worker does not look up counts as zeros.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/embedding/input_dist.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

class ReducedSums {
 public:
  // For the shards that ReducesGradients() chooses for the codec. The map and the pool must outlive
  // it.
  ReducedSums(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire);

  // Whether this worker's i-th shard is reduced.
  bool Has(size_t held) const { return !at_.empty() && at_[held] != kNone; }

  // Sums the gradients of one of this worker's virtual workers. `gradients`: those of all bags
  // [bags, columns]. Thread-safe for different shards and virtual workers.
  void Add(const ShardIds& ids, size_t held, int virtual_worker, const float* gradients);
  // Every worker calls these in turn, and may do something else in between.
  void Start();
  void Finish();

  // After Finish(): [rows, columns], or null.
  const float* Of(size_t held) const { return Has(held) ? sums_.data() + at_[held] : nullptr; }

 private:
  static constexpr size_t kNone = ~size_t{0};

  const ShardMap& map_;
  std::vector<size_t> at_;             // by held shard: offset in each array, or kNone
  std::vector<AlignedBuffer> leaves_;  // by own virtual worker
  std::vector<std::span<float>> leaf_spans_;
  AlignedBuffer sums_;
  std::unique_ptr<TreeReducer> reducer_;  // null: there is nothing to reduce
};

}  // namespace renzan
