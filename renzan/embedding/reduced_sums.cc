#include "renzan/embedding/reduced_sums.h"

#include <algorithm>

#include "renzan/embedding/kernels.h"
#include "renzan/plan/replicated_gradients.h"

namespace renzan {

namespace {

// Adds a bag's gradient to those of its rows.
void AddBag(const ShardIds& ids, size_t bag, int64_t columns, const float* gradient, float* sums) {
  const std::span<const int32_t> rows = ids.Bag(bag);
  if (ids.weights.empty()) {
    for (const int32_t row : rows) AddTo(columns, gradient, sums + row * columns);
    return;
  }
  const float* weight = ids.weights.data() + ids.offsets[bag];
  for (const int32_t row : rows) AddScaledTo(columns, *weight++, gradient, sums + row * columns);
}

}  // namespace

ReducedSums::ReducedSums(Communicator& comm, ThreadPool& pool, const ShardMap& map, RowCodec wire)
    : map_(map) {
  if (comm.world_size() == 1) return;
  size_t size = 0;
  for (const size_t shard : map.held()) {
    at_.push_back(kNone);
    const int64_t rows = map.rows_of(shard).size(), columns = map.columns_of(shard);
    if (map.shards()[shard].rank != kEveryRank ||
        !ReducesGradients(rows, columns, wire, map.batch() * map.table_of(shard).bags()))
      continue;
    at_.back() = size;
    size += static_cast<size_t>(rows * columns);
  }
  if (size == 0) return;
  for (int v = 0; v < map.own().size(); ++v) leaves_.emplace_back(size);
  for (AlignedBuffer& leaf : leaves_) leaf_spans_.push_back(leaf.span());
  sums_ = AlignedBuffer(size);
  reducer_ = std::make_unique<TreeReducer>(comm, pool, map.virtual_workers(), size,
                                           FloatType::kFloat32, "gradients of small tables");
}

void ReducedSums::Add(const ShardIds& ids, size_t held, int virtual_worker,
                      const float* gradients) {
  const int64_t columns = map_.columns_of(map_.held()[held]);
  const int64_t rows = map_.rows_of(map_.held()[held]).size();
  float* const sums =
      leaves_[static_cast<size_t>(virtual_worker - map_.own().begin)].data() + at_[held];
  std::fill_n(sums, rows * columns, 0.0f);
  const size_t v = static_cast<size_t>(virtual_worker);
  for (size_t bag = static_cast<size_t>(ids.first_bag[v]);
       bag < static_cast<size_t>(ids.first_bag[v + 1]); ++bag)
    AddBag(ids, bag, columns, gradients + static_cast<int64_t>(bag) * columns, sums);
}

void ReducedSums::Start() {
  if (reducer_) reducer_->Start(leaf_spans_, sums_.span());
}

void ReducedSums::Finish() {
  if (!reducer_) return;
  reducer_->Continue();
  reducer_->Finish();
}

}  // namespace renzan
