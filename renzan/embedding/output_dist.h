#pragma once

// output_dist: the holders of shards pool the rows of the whole batch, and send every worker those
// of its own samples, which adds up what comes from several shards. What a worker needs itself, it
// pools when it reads it, into the cache. The wire codec is applied to every sum, also if it stays
// on this worker, so that placement cannot change a value.

#include <cstdint>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/embedding/row_messages.h"
#include "renzan/embedding/shard.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct PreparedBatch;

class OutputDist {
 public:
  // The map and the pool must outlive it.
  OutputDist(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire);

  // Pools what others need, and starts to send. `shards`: those of this worker. The batch's rows
  // are pinned.
  void Send(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch);
  void Receive() { messages_.Wait(); }

  // After Receive(): the pooled rows of one of this worker's virtual workers. Those of its sample i
  // go to row i, from column `first_column` on, the tables side by side. Thread-safe.
  void Read(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
            int virtual_worker, int64_t first_column, BlockedMatrix* out) const;

 private:
  // The rows of a virtual worker's bags in a held shard, encoded.
  void Pool(const EmbeddingShard& shard, const PreparedBatch& batch, size_t held,
            int virtual_worker, std::byte* to) const;
  void ReadColumns(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
                   size_t table, int column_block, int virtual_worker, int64_t column,
                   BlockedMatrix* out) const;

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
  // By shard: where its rows come from, and its place among the shards of that worker.
  struct Source {
    int rank;
    size_t held;
  };
  std::vector<Source> sources_;
};

}  // namespace renzan
