#pragma once

// What depends on ids only, of the batch at hand and of the next one, whose ids are exchanged while
// the current one is computed. The rows that they stand for are not read here, so nothing is stale;
// their stores are told that they will be wanted (RowStore::Prefetch).
//
// Every rank makes the same calls. Not thread-safe.

#include <memory>
#include <span>
#include <vector>

#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

class PreparedBatches {
 public:
  // `embeddings` must outlive it.
  explicit PreparedBatches(const ShardedEmbeddings& embeddings);

  // Makes the batch with these ids of this worker's samples, one view per table, the current one.
  // If one was announced (BeginNext) during the last batch, it must be that one, still in the same
  // memory; else its ids are exchanged now.
  void Begin(std::span<const IdsView> ids);
  PreparedBatch& current() { return *current_; }
  // The ids given to Begin(), while what they view stays.
  std::span<const IdsView> current_ids() const { return current_ids_; }

  // In this order, during the current batch; without BeginNext the others do nothing. What the ids
  // view must stay until that batch has been the current one.
  void BeginNext(std::span<const IdsView> ids);
  void ContinueNext();
  void EndNext();
  // The next batch, if EndNext() has ended its exchange.
  const PreparedBatch* next() const { return state_ == Next::kReady ? next_.get() : nullptr; }

 private:
  const ShardedEmbeddings& embeddings_;
  std::unique_ptr<PreparedBatch> current_, next_;
  enum class Next { kNone, kInFlight, kReady } state_ = Next::kNone;
  std::vector<IdsView> current_ids_, next_ids_;
};

}  // namespace renzan
