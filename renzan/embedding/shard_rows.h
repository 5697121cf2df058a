#pragma once

// The rows of a shard: those of its row blocks, block after block.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/index_range.h"
#include "renzan/plan/table_spec.h"

namespace renzan {

class ShardRows {
 public:
  ShardRows(const TableSpec& table, IndexRange row_blocks)
      : blocks_(row_blocks),
        num_blocks_(table.row_blocks),
        shift_(std::countr_zero(static_cast<unsigned>(table.row_blocks))) {
    first_.push_back(0);
    for (int block = row_blocks.begin; block < row_blocks.end; ++block)
      first_.push_back(first_.back() + table.rows_of_block(block));
    CHECK(size() <= kMostShardRows);  // CheckPlan
  }

  int64_t size() const { return first_.back(); }
  int num_blocks() const { return blocks_.size(); }
  // Where each block begins, and where the last one ends.
  const std::vector<int64_t>& first() const { return first_; }

  // The number in this shard of row `row` of the table, which the shard must contain.
  int32_t Local(int64_t row) const {
    const size_t block = static_cast<size_t>((row & (num_blocks_ - 1)) - blocks_.begin);
    return static_cast<int32_t>(first_[block] + (row >> shift_));
  }
  // Row `local` of the shard, in its block `block`, is row Stride() · local + Offset(block) of the
  // table. OfTable(local) is the same for callers that do not know the block.
  int64_t Stride() const { return num_blocks_; }
  int64_t Offset(size_t block) const {
    return blocks_.begin + static_cast<int64_t>(block) - first_[block] * num_blocks_;
  }
  int64_t OfTable(int64_t local) const {
    const auto end_of_block = std::upper_bound(first_.begin(), first_.end(), local);
    return Stride() * local + Offset(static_cast<size_t>(end_of_block - first_.begin() - 1));
  }

 private:
  IndexRange blocks_;
  int64_t num_blocks_;  // of the table
  int shift_;
  std::vector<int64_t> first_;
};

}  // namespace renzan
