#include "renzan/step/prepared_batches.h"

#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

void View(const Batch& slice, std::vector<IdsView>* ids) {
  ids->clear();
  for (const FeatureIds& feature : slice.categorical)
    ids->push_back({feature.values, feature.offsets});
}

}  // namespace

PreparedBatches::PreparedBatches(const ShardedEmbeddings& embeddings)
    : current_(embeddings.MakePreparedBatch()), next_(embeddings.MakePreparedBatch()) {}

void PreparedBatches::Begin(const Batch& slice) {
  View(slice, &current_ids_);
  if (state_ == Next::kReady) {
    std::swap(current_, next_);
  } else {
    current_->ids.Start(current_ids_);
    current_->ids.Continue();
    current_->ids.Finish();
  }
  state_ = Next::kNone;
}

void PreparedBatches::BeginNext(const Batch* next) {
  CHECK(state_ == Next::kNone);
  if (next == nullptr) return;
  View(*next, &next_ids_);
  next_->ids.Start(next_ids_);
  state_ = Next::kInFlight;
}

void PreparedBatches::ContinueNext() {
  if (state_ == Next::kInFlight) next_->ids.Continue();
}

void PreparedBatches::EndNext() {
  if (state_ != Next::kInFlight) return;
  next_->ids.Finish();
  state_ = Next::kReady;
}

}  // namespace renzan
