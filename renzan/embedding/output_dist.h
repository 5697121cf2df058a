#pragma once

// output_dist: the holders of shards pool the rows of the whole batch and send every worker those
// of its own samples. The worker adds up what arrives from several shards. Rows that a worker both
// holds and needs are pooled only when it reads them, so that they are still in the cache. The wire
// codec is applied to every sum, even one that stays on this worker, so that placement cannot
// change a value.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/embedding/row_messages.h"
#include "renzan/embedding/shard.h"
#include "renzan/plan/bag_places.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct PreparedBatch;

class OutputDist {
 public:
  // The map and the pool must outlive it.
  OutputDist(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire);

  // Pools the rows that other workers need and starts to send them. `shards`: those of this worker.
  // The batch's rows must be pinned.
  void Send(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch);
  void Receive() { messages_.Wait(); }

  // After Receive(): writes the pooled rows of one of this worker's virtual workers: those of
  // sample i to row i of the matrices. `places`: of ShardMap::num_bags(). Thread-safe.
  void Read(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
            int virtual_worker, std::span<const BagPlace> places,
            std::span<BlockedMatrix> matrices) const;

 private:
  // Pools and encodes a virtual worker's bags in a held shard.
  void Pool(const EmbeddingShard& shard, const PreparedBatch& batch, size_t held,
            int virtual_worker, std::byte* to) const;
  void ReadColumns(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
                   size_t table, int column_block, int virtual_worker,
                   std::span<const BagPlace> places, std::span<BlockedMatrix> matrices) const;

  ThreadPool& pool_;
  const ShardMap& map_;
  RowCodec wire_;
  RowMessages messages_;
  // What one shard contributes to the rows that are being read.
  struct Part {
    const std::byte* rows;   // of the bags that are not empty
    const int32_t* lengths;  // of the bags; null: one row each
    uint32_t leaf;
  };
  // By shard: the worker that its rows come from, and its index among that worker's shards.
  struct Source {
    int rank;
    size_t held;
  };
  std::vector<Source> sources_;
};

}  // namespace renzan
