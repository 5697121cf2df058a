#pragma once

// The tables of a model, whole, in this process, for inference: no communicator, no optimizer
// states, any number of samples at a time. Pooled rows have the same bits as those of
// ShardedEmbeddings under any plan.
//
// Thread-safe, except while rows are being loaded.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/embedding/ids_by_table.h"
#include "renzan/embedding/shard.h"
#include "renzan/plan/bag_places.h"
#include "renzan/tensor/blocked_matrix.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

struct WholeTablesOptions {
  std::vector<TableSpec> tables;
  FloatType rows = FloatType::kFloat32;   // in memory
  RowCodec forward = RowCodec::kFloat32;  // rounds pooled rows, as in training
  MakeRowStore make_store;                // null: MemoryRowStore
};

class WholeTables {
 public:
  // Whether the rows of each table can be numbered in one shard (kMostShardRows).
  static bool CanHold(std::span<const TableSpec> tables);

  // Allocates zeros, to be loaded with LoadWeights().
  WholeTables(WholeTablesOptions options, ThreadPool& pool);

  // One for each column block of each table.
  std::span<EmbeddingShard> shards() { return shards_; }

  std::span<const TableSpec> tables() const { return options_.tables; }

  // Writes the pooled rows of samples [first, first + n): those of sample first + i to row i of
  // the matrices. `ids`: one view per table. `places`: of all bags.
  void Pool(std::span<const IdsView> ids, int64_t first, int64_t n,
            std::span<const BagPlace> places, std::span<BlockedMatrix> matrices) const;

 private:
  void PoolTable(size_t table, const IdsView& ids, int64_t first, int64_t n,
                 std::span<const BagPlace> places, std::span<BlockedMatrix> matrices) const;

  WholeTablesOptions options_;
  std::vector<EmbeddingShard> shards_;
  std::vector<size_t> first_shard_;  // by table
};

}  // namespace renzan
