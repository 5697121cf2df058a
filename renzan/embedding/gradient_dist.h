#pragma once

// The reverse of output_dist: each worker sends the gradients of its samples' pooled rows to the
// holders of the shards that they looked up. The wire codec is applied to every gradient, also if
// it stays on this worker, so that placement cannot change a value.

#include <cstdint>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/blocked_matrix.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/wire_range.h"
#include "renzan/embedding/row_messages.h"

namespace renzan {

class GradientDist {
 public:
  // `scale`: a power of two by which gradients are multiplied for sending. The map and the pool
  // must outlive it.
  GradientDist(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire,
               float scale);

  // Before the first Write() of a batch.
  void Begin(const InputDist& ids) { messages_.LayOut(ids); }
  // The gradients of what OutputDist::Read() returned, in the same layout. Thread-safe for
  // different virtual workers.
  void Write(const InputDist& ids, int virtual_worker, int64_t first_column,
             const BlockedMatrix& gradient);
  void Send() { messages_.Send("gradients to owners", false); }
  void Receive(const InputDist& ids);

  // After Receive(): the gradients of the bags of this worker's i-th shard [bags, columns].
  const float* of_held(size_t i) const { return gradients_[i].data(); }

  // How many gradients of this worker lost range on a float16 wire since the last call.
  WireRange TakeRange();

 private:
  void WriteColumns(const InputDist& ids, size_t table, int column_block, int virtual_worker,
                    int64_t column, const BlockedMatrix& gradient, WireRange* range);

  ThreadPool& pool_;
  const ShardMap& map_;
  RowCodec wire_;
  float scale_;
  RowMessages messages_;
  // By shard: who holds it, and its place among the shards of each.
  struct Holder {
    int rank;
    size_t held;
  };
  std::vector<std::vector<Holder>> holders_;
  std::vector<WireRange> range_;          // by virtual worker assigned to this worker
  std::vector<AlignedBuffer> gradients_;  // by held shard
};

}  // namespace renzan
