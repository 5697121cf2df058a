#pragma once

// input_dist: sends the ids that each worker read for its own samples to the holders of the rows,
// so that each shard has its lookups of the whole global batch, in sample order. One batch at a
// time; another object may exchange another batch meanwhile.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/embedding/ids_by_table.h"
#include "renzan/embedding/shard_map.h"

namespace renzan {

// The lookups of the global batch in one shard. Empty bags are left out. A bag's rows are in the
// order of their row blocks, and within a block in the sample's order.
struct ShardIds {
  std::vector<int32_t> rows;             // of the shard
  std::vector<int32_t> offsets;          // [bags + 1], or empty when every bag has exactly one row
  std::vector<int32_t> first_bag;        // [virtual workers + 1]
  std::vector<uint16_t> virtual_worker;  // [bags]
  // Only of tables whose lookups have weights: the weight of each of `rows`, and its bag.
  std::vector<float> weights;
  std::vector<int32_t> bag_of_row;

  size_t num_bags() const { return virtual_worker.size(); }
  std::span<const int32_t> Bag(size_t bag) const {
    if (offsets.empty()) return {rows.data() + bag, 1};
    return {rows.data() + offsets[bag], static_cast<size_t>(offsets[bag + 1] - offsets[bag])};
  }
};

// What this worker's samples look up in one shard, whichever worker holds it.
struct OwnBags {
  std::vector<int32_t> lengths;    // [own bags], or empty when each has exactly one row
  std::vector<int32_t> first_bag;  // [own virtual workers + 1], counting only bags with rows

  // The lengths from an own bag on; null when each is 1.
  const int32_t* LengthsFrom(int64_t own_bag) const {
    return lengths.empty() ? nullptr : lengths.data() + own_bag;
  }
};

class InputDist {
 public:
  // The pool and the map must outlive it.
  InputDist(Communicator& comm, ThreadPool& pool, const ShardMap& map);

  // Every rank calls these in this order and may do other work in between. `ids`: one view per
  // table, of the bags of this rank's samples; not used after Start() returns.
  void Start(std::span<const IdsView> ids);
  // If any shard is jagged, waits for the row counts, without which the rows cannot be received.
  void Continue();
  void Finish();

  // The lookups in the i-th shard that this rank holds. Valid from Finish() until the next
  // Finish().
  const ShardIds& of_held(size_t i) const { return held_[i]; }
  // The bags of this rank's samples. Valid from Start() until the next Start().
  const OwnBags& own_bags(size_t shard) const { return own_[shard]; }

 private:
  // How much of a message belongs to one shard.
  struct Count {
    int32_t bags, rows;
  };
  struct Part {
    size_t rank;   // the message's other worker
    size_t shard;  // sent: of map.shards(); received: of map.held()
    size_t first;  // word of the message
    Count count;
  };
  bool AnyJagged() const;
  size_t WordsOf(size_t shard, Count count) const;
  size_t OwnBagsOf(size_t table) const;

  void Divide(size_t table, const IdsView& ids);
  void TakeWhole(size_t shard, const IdsView& ids);
  template <bool kWeighted>
  void DivideByBlocks(size_t table, const IdsView& ids);
  void CountBags(size_t table, OwnBags* bags) const;
  bool IsWeighted(size_t shard) const { return map_.table_of(shard).weighted; }

  void PostCounts();
  void PostRows();
  void Pack(const Part& part);
  // `parts`: those of one held shard, by rank.
  void Unpack(std::span<const Part> parts, ShardIds* ids);
  void UnpackBags(const Part& part, ShardIds* ids) const;
  void UnpackWeights(std::span<const Part> parts, ShardIds* ids);
  // Whether both ends are this worker; such a part is not sent.
  bool IsOwn(const Part& part) const { return part.rank == static_cast<size_t>(map_.rank()); }

  Communicator& comm_;
  ThreadPool& pool_;
  const ShardMap& map_;
  // By shard: what own samples look up. `rows_` views `divided_`; shards of the same rows have the
  // same view. The same of weights, which other tables do not have.
  std::vector<OwnBags> own_;
  std::vector<std::span<const int32_t>> rows_;
  std::vector<std::vector<int32_t>> divided_;
  std::vector<std::span<const float>> weights_;
  std::vector<std::vector<float>> divided_weights_;
  // By rank, for every jagged shard of the receiver.
  std::vector<std::vector<Count>> announced_, counts_;
  std::vector<std::vector<int32_t>> send_, recv_;  // by rank
  // Sent parts are those for other workers; received parts are ordered by held shard, then by rank.
  std::vector<Part> sent_, received_;
  std::vector<ShardIds> held_;
  Exchange exchange_;  // last, so that it ends before the buffers do
};

}  // namespace renzan
