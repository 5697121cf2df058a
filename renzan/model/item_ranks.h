#pragma once

// Ranks items for queries by the product of their vectors: exact, over all items. A score is a
// float32 product of gemm.h, so ranks depend on the vectors alone, not on threads or on how queries
// are split.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/nn/right_operand.h"

namespace renzan {

class ItemRanks {
 public:
  // Of items with vectors of zeros. Takes count · width values of memory.
  ItemRanks(int64_t count, int64_t width);

  int64_t count() const { return count_; }

  // Sets the vectors [n, width] of the items from `first` on.
  void Set(int64_t first, std::span<const float> vectors);

  // ranks[i] = 1 + how many other items have at least the score that item own[i] has for the query
  // vector i of `queries` [n, width]. An item with an equal score, or one that is NaN, is ahead: a
  // model that gives all items one score ranks each of them last.
  void Rank(std::span<const float> queries, std::span<const int64_t> own, ThreadPool& pool,
            std::span<int64_t> ranks) const;

 private:
  struct Scratch;
  void RankGroup(std::span<const float> queries, std::span<const int64_t> own, Scratch* scratch,
                 std::span<int64_t> ranks) const;

  int64_t count_, width_;
  std::vector<RightOperand> tiles_;  // [width, items of the tile] each
};

}  // namespace renzan
