#include "renzan/embedding/prepared_batches.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Whether they view the same memory. Comparing the ids would take longer than some stages.
bool SameIds(std::span<const IdsView> a, std::span<const IdsView> b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.data() == y.data() && x.size() == y.size();
  };
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [&](const IdsView& x, const IdsView& y) {
        return same(x.values, y.values) && same(x.offsets, y.offsets) && same(x.weights, y.weights);
      });
}

}  // namespace

PreparedBatches::PreparedBatches(const ShardedEmbeddings& embeddings)
    : embeddings_(embeddings),
      current_(embeddings.MakePreparedBatch()),
      next_(embeddings.MakePreparedBatch()) {}

std::span<const IdsView> PreparedBatches::Assign(std::span<const IdsView> features,
                                                 Ids* ids) const {
  ids->features.assign(features.begin(), features.end());
  ids->by_table.Assign(embeddings_.map().tables(), features);
  return ids->by_table.views();
}

void PreparedBatches::Begin(std::span<const IdsView> features) {
  CHECK_MSG(state_ != Next::kInFlight, "the exchange of the next batch's ids has not ended");
  if (state_ == Next::kReady) {
    CHECK_MSG(SameIds(features, next_ids_.features), "this is not the batch that was announced");
    std::swap(current_, next_);
    std::swap(current_ids_, next_ids_);
  } else {
    current_->ids.Start(Assign(features, &current_ids_));
    current_->ids.Continue();
    current_->ids.Finish();
  }
  state_ = Next::kNone;
}

void PreparedBatches::BeginNext(std::span<const IdsView> features) {
  CHECK(state_ == Next::kNone);
  next_->ids.Start(Assign(features, &next_ids_));
  state_ = Next::kInFlight;
}

void PreparedBatches::ContinueNext() {
  if (state_ == Next::kInFlight) next_->ids.Continue();
}

void PreparedBatches::EndNext() {
  if (state_ != Next::kInFlight) return;
  next_->ids.Finish();
  embeddings_.Prefetch(*next_);
  state_ = Next::kReady;
}

}  // namespace renzan
