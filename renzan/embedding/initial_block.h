#pragma once

// Compares rows of a shard's block with their initial values: rows that do not differ need not be
// saved (table_snapshot.h). Not thread-safe.

#include <span>
#include <vector>

#include "renzan/checkpoint/initial_tensor.h"
#include "renzan/embedding/shard.h"

namespace renzan {

class InitialBlock {
 public:
  InitialBlock(const EmbeddingShard& shard, const EmbeddingShard::Block& block);

  // Makes rows [first, first + n) of the block comparable.
  void Draw(int64_t first, int64_t n);
  // Whether weights [dim], once rounded to the store's type, differ from those that `row` begins
  // with. `row` is one of those drawn.
  bool WeightsDiffer(int64_t row, std::span<const float> weights);
  // Likewise of the state [state_width] of any row.
  bool StateDiffers(std::span<const float> state) const;

 private:
  FloatType type_;
  size_t dim_;
  InitialTensor weights_;
  float state_;
  int64_t first_ = 0;
  std::vector<float> drawn_, rounded_;
};

}  // namespace renzan
