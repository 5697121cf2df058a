#include "renzan/embedding/initial_block.h"

#include <algorithm>
#include <cstring>

#include "renzan/embedding/table_tensors.h"

namespace renzan {

InitialBlock::InitialBlock(const EmbeddingShard& shard, const EmbeddingShard::Block& block)
    : type_(shard.store->layout().type),
      dim_(static_cast<size_t>(shard.dim())),
      weights_(shard.initial,
               {WeightKey(shard, block), {block.num_rows, shard.dim()}, DTypeOf(type_)}),
      state_(shard.initial.state) {}

void InitialBlock::Draw(int64_t first, int64_t n) {
  first_ = first;
  drawn_.resize(static_cast<size_t>(n) * dim_);
  weights_.Read(first * static_cast<int64_t>(dim_), drawn_);
}

bool InitialBlock::WeightsDiffer(int64_t row, std::span<const float> weights) {
  rounded_.assign(weights.begin(), weights.end());
  RoundTrip(type_, rounded_);
  const size_t drawn = static_cast<size_t>(row - first_) * dim_;
  return std::memcmp(rounded_.data(), &drawn_[drawn], dim_ * sizeof(float)) != 0;
}

bool InitialBlock::StateDiffers(std::span<const float> state) const {
  return std::ranges::any_of(
      state, [&](float value) { return std::memcmp(&value, &state_, sizeof(float)) != 0; });
}

}  // namespace renzan
