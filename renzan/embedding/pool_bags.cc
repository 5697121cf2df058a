#include "renzan/embedding/pool_bags.h"

#include "renzan/embedding/kernels.h"

namespace renzan {

void PoolBags(const EmbeddingShard& shard, RowCodec wire, const Bags& bags, float* out) {
  const RowSlots& store = shard.store->slots();
  if (bags.offsets.empty()) {
    GatherRows(store, {bags.slots, bags.count}, out);
  } else if (shard.rows.num_blocks() == 1) {
    PoolRows(store, bags.slots, bags.offsets, out, bags.weights);
  } else {
    PoolRowBlocks(store, shard.rows.first(), wire, bags.rows, bags.slots, bags.offsets, out,
                  bags.weights);
  }
}

}  // namespace renzan
