#pragma once

// Rows exchanged between the workers of samples and the holders of shards, one per bag: pooled rows
// one way, their gradients the other. Both sides know from the ids which samples have a bag in
// which shard, so messages hold nothing but rows, ordered by (shard, virtual worker, sample).

#include <cstddef>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/embedding/input_dist.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

class RowMessages {
 public:
  struct Options {
    RowCodec wire = RowCodec::kFloat32;
    // By shard: whether the rows of a replicated shard go to every holder, not only from a worker
    // to itself.
    std::vector<bool> to_every_holder;
    bool to_itself = true;  // whether a worker has a message to itself
  };
  RowMessages(Communicator& comm, const ShardMap& map, Options options);

  // Computes sizes and places for a batch whose ids have arrived; nothing may be in flight.
  void LayOut(const InputDist& ids);

  size_t row_bytes(size_t shard) const {
    return EncodedRowBytes(options_.wire, static_cast<size_t>(map_.columns_of(shard)));
  }
  // Whether rows travel between this worker and `rank` where one of them holds the shard and the
  // other has the samples.
  bool Travels(size_t shard, int rank) const {
    if (rank == map_.rank()) return options_.to_itself;
    return options_.to_every_holder[shard] || map_.shards()[shard].rank != kEveryRank;
  }

  // Where a virtual worker's rows are in the message between this worker, which holds shard `held`,
  // and the worker that has the samples. A message holds one virtual worker after another...
  std::byte* OfHeld(size_t held, int virtual_worker);
  const std::byte* OfHeld(size_t held, int virtual_worker) const {
    return const_cast<RowMessages*>(this)->OfHeld(held, virtual_worker);
  }
  // ... and in the message between this worker, which has the samples, and worker `holder`.
  std::byte* OfSamples(int holder, size_t held_by_it, int virtual_worker);
  const std::byte* OfSamples(int holder, size_t held_by_it, int virtual_worker) const {
    return const_cast<RowMessages*>(this)->OfSamples(holder, held_by_it, virtual_worker);
  }

  // Does not send a worker's message to itself, which is read where it was written.
  void Send(const char* operation, bool from_holders);
  void Wait();

 private:
  Communicator& comm_;
  const ShardMap& map_;
  Options options_;
  // The offsets of OfHeld() and OfSamples(), and the messages, by rank.
  std::vector<std::vector<size_t>> held_at_;                  // by held shard and virtual worker
  std::vector<std::vector<std::vector<size_t>>> samples_at_;  // by rank, its shard, own virtual w.
  std::vector<std::vector<std::byte>> of_held_, of_samples_;
  std::vector<std::span<const std::byte>> from_;
  std::vector<std::span<std::byte>> to_;
  Exchange exchange_;  // last, so that it ends before the buffers do
};

}  // namespace renzan
