#include "renzan/train/prepared_batches.h"

#include <utility>

#include "renzan/base/error.h"

namespace renzan {

PreparedBatches::PreparedBatches(const ShardedEmbeddings& embeddings)
    : current_(embeddings.MakePreparedBatch()), next_(embeddings.MakePreparedBatch()) {}

void PreparedBatches::Start(const Batch& slice, PreparedBatch* batch) {
  ids_.clear();
  for (const FeatureIds& feature : slice.categorical)
    ids_.push_back({feature.values, feature.offsets});
  batch->ids.Start(ids_);
}

void PreparedBatches::Begin(const Batch& slice) {
  if (state_ == Next::kReady) {
    std::swap(current_, next_);
  } else {
    Start(slice, current_.get());
    current_->ids.Continue();
    current_->ids.Finish();
  }
  state_ = Next::kNone;
}

void PreparedBatches::BeginNext(const Batch* next) {
  CHECK(state_ == Next::kNone);
  if (next == nullptr) return;
  Start(*next, next_.get());
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
