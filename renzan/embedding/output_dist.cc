#include "renzan/embedding/output_dist.h"

#include <algorithm>

#include "renzan/embedding/pool_bags.h"
#include "renzan/embedding/sharded_embeddings.h"
#include "renzan/embedding/tree_order.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan {

OutputDist::OutputDist(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire)
    : pool_(pool),
      map_(map),
      wire_(wire),
      messages_(comm, map,
                {.wire = wire,
                 .to_every_holder = std::vector<bool>(map.shards().size()),
                 .to_itself = false}) {
  sources_.resize(map.shards().size());
  for (int r = 0; r < map.world_size(); ++r) {
    const std::vector<size_t>& held = map.held_by(r);
    for (size_t k = 0; k < held.size(); ++k)
      if (r == map.rank() || map.shards()[held[k]].rank == r) sources_[held[k]] = {r, k};
  }
}

void OutputDist::Send(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch) {
  messages_.LayOut(batch.ids);
  const size_t blocks = static_cast<size_t>(map_.virtual_workers());
  pool_.ParallelTasks(shards.size() * blocks, [&](int, size_t task) {
    const size_t held = task / blocks;
    const int v = static_cast<int>(task % blocks);
    if (messages_.Travels(map_.held()[held], map_.rank_of(v)))
      Pool(shards[held], batch, held, v, messages_.OfHeld(held, v));
  });
  messages_.Send("output_dist", true);
}

void OutputDist::Pool(const EmbeddingShard& shard, const PreparedBatch& batch, size_t held,
                      int virtual_worker, std::byte* to) const {
  const ShardIds& ids = batch.ids.of_held(held);
  const size_t v = static_cast<size_t>(virtual_worker);
  const size_t first = static_cast<size_t>(ids.first_bag[v]);
  const size_t bags = static_cast<size_t>(ids.first_bag[v + 1]) - first;
  const size_t values = bags * static_cast<size_t>(shard.dim());
  thread_local std::vector<float> scratch;
  float* pooled = reinterpret_cast<float*>(to);
  if (wire_ != RowCodec::kFloat32) {
    scratch.resize(values);
    pooled = scratch.data();
  }
  if (bags == 0) return;
  const std::vector<int32_t>& slots = batch.slots[held].empty() ? ids.rows : batch.slots[held];
  PoolBags(shard, wire_, BagsOf(ids.rows, slots, ids.offsets, first, bags, ids.weights), pooled);
  if (wire_ != RowCodec::kFloat32)
    EncodeRows(wire_, static_cast<size_t>(shard.dim()), {pooled, values}, to);
}

void OutputDist::Read(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
                      int virtual_worker, std::span<const BagPlace> places,
                      std::span<BlockedMatrix> matrices) const {
  for (size_t t = 0; t < map_.tables().size(); ++t)
    for (int c = 0; c < map_.tables()[t].column_blocks; ++c)
      ReadColumns(shards, batch, t, c, virtual_worker, OfRange(places, map_.bags_of(t)), matrices);
}

void OutputDist::ReadColumns(const std::vector<EmbeddingShard>& shards, const PreparedBatch& batch,
                             size_t table, int column_block, int virtual_worker,
                             std::span<const BagPlace> places,
                             std::span<BlockedMatrix> matrices) const {
  const std::vector<size_t>& sources = map_.shards_of(table, column_block);
  const int64_t n = map_.bags_per_virtual_worker(table);
  const int64_t first_bag = (virtual_worker - map_.own().begin) * n;
  const int64_t columns = map_.tables()[table].block_columns();
  const int64_t first_column = column_block * columns;
  const size_t dim = static_cast<size_t>(columns), row_bytes = messages_.row_bytes(sources[0]);
  const bool mean = map_.tables()[table].divides_by_length();
  thread_local std::vector<Part> of_this_thread;
  std::vector<Part>& parts = of_this_thread;
  thread_local std::vector<float> scratch;
  scratch.resize(TreeOrder::kMaxDepth * dim);
  float* const stack = scratch.data();
  parts.clear();
  // Holds the rows that are pooled here, one source after another.
  thread_local std::vector<std::byte> own;
  own.resize(sources.size() * static_cast<size_t>(n) * row_bytes);
  std::byte* next = own.data();
  for (const size_t shard : sources) {
    const auto [rank, held] = sources_[shard];
    const std::byte* rows = next;
    if (rank == map_.rank()) {
      Pool(shards[held], batch, held, virtual_worker, next);
      next += static_cast<size_t>(n) * row_bytes;
    } else {
      rows = messages_.OfSamples(rank, held, virtual_worker);
    }
    parts.push_back({.rows = rows,
                     .lengths = batch.ids.own_bags(shard).LengthsFrom(first_bag),
                     .leaf = static_cast<uint32_t>(map_.shards()[shard].row_blocks.begin)});
  }
  if (parts.size() == 1 && parts[0].lengths == nullptr && wire_ == RowCodec::kFloat32 &&
      places.size() == 1)
    return matrices[places[0].matrix].SetColumns(
        places[0].column + first_column, reinterpret_cast<const float*>(parts[0].rows), columns);
  const auto add = [&](size_t from, size_t to) {
    AddRoundTripRow(wire_, {stack + to * dim, dim}, {stack + from * dim, dim});
  };
  TreeOrder order;
  const int64_t bags = std::ssize(places);  // per sample
  for (int64_t i = 0, sample = 0, bag = 0; i < n; ++i) {
    int64_t length = 0;
    const float* pooled = stack;
    for (Part& part : parts) {
      const int32_t here = part.lengths == nullptr ? 1 : part.lengths[i];
      if (here == 0) continue;
      length += here;
      if (parts.size() == 1 && wire_ == RowCodec::kFloat32) {
        pooled = reinterpret_cast<const float*>(part.rows);
      } else {
        DecodeRows(wire_, dim, part.rows, {stack + order.Push(part.leaf, add) * dim, dim});
      }
      part.rows += row_bytes;
    }
    if (length == 0) {
      std::fill_n(stack, dim, 0.0f);
    } else if (pooled == stack) {
      order.Finish(add);
    }
    if (mean && length > 1) {
      if (pooled != stack) std::copy_n(pooled, dim, stack);
      pooled = stack;
      ScaleValues(1.0f / static_cast<float>(length), columns, stack);
    }
    const BagPlace& place = places[static_cast<size_t>(bag)];
    matrices[place.matrix].SetRow(sample, place.column + first_column, pooled, columns);
    if (++bag == bags) {
      bag = 0;
      ++sample;
    }
  }
}

}  // namespace renzan
