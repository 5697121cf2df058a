#pragma once

// What depends on ids only, of the batch at hand and of the next one, whose ids are exchanged while
// the current one is computed. The rows that they stand for are not read here, so nothing is stale.
//
// Every rank makes the same calls. Not thread-safe.

#include <memory>
#include <span>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

class PreparedBatches {
 public:
  explicit PreparedBatches(const ShardedEmbeddings& embeddings);

  // Makes `slice` the current batch. If one was announced (BeginNext) during the last batch, it
  // must be that one, still in the same memory; else its ids are exchanged now.
  void Begin(const Batch& slice);
  PreparedBatch& current() { return *current_; }
  // The ids of the slice given to Begin(), one view per table, while that stays.
  std::span<const IdsView> current_ids() const { return current_ids_; }

  // In this order, during the current batch; they do nothing if `next` is null. It must stay until
  // it has been the current one.
  void BeginNext(const Batch* next);
  void ContinueNext();
  void EndNext();
  // The next batch, if EndNext() has ended its exchange.
  const PreparedBatch* next() const { return state_ == Next::kReady ? next_.get() : nullptr; }

 private:
  std::unique_ptr<PreparedBatch> current_, next_;
  enum class Next { kNone, kInFlight, kReady } state_ = Next::kNone;
  std::vector<IdsView> current_ids_, next_ids_;
};

}  // namespace renzan
