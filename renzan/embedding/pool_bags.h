#pragma once

// Pools bags of a shard's rows. The order of a sum depends only on the rows, so it is the same
// under every plan.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/embedding/shard.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

// Consecutive bags. The rows of a bag are in the order of their row blocks.
struct Bags {
  const int32_t* rows;               // of the shard
  const int32_t* slots;              // where they are pinned
  std::span<const int32_t> offsets;  // [count + 1], into both; empty when every bag has one row:
  size_t count;                      // bag i is then rows[i]
  // Of each of `rows`, which have offsets; null: each is 1.
  const float* weights = nullptr;
};

// Bags [first, first + count) of all.
inline Bags BagsOf(const std::vector<int32_t>& rows, const std::vector<int32_t>& slots,
                   const std::vector<int32_t>& offsets, size_t first, size_t count,
                   const std::vector<float>& weights) {
  if (offsets.empty()) return {rows.data() + first, slots.data() + first, {}, count};
  return {rows.data(), slots.data(), std::span(offsets).subspan(first, count + 1), count,
          weights.empty() ? nullptr : weights.data()};
}

// Writes the (weighted) sum of each bag's rows to out [bags, dim]. If the shard has several row
// blocks and the bags have offsets, all sums are rounded by the codec `wire` (PoolRowBlocks), and
// no bag may be empty. Otherwise nothing is rounded.
void PoolBags(const EmbeddingShard& shard, RowCodec wire, const Bags& bags, float* out);

}  // namespace renzan
