#pragma once

// The parts of the current batch and of the next one that depend only on ids. The next batch's ids
// are exchanged while the current batch is computed. No rows are read here, so nothing is stale;
// their stores are told that they will be needed soon (RowStore::Prefetch).
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

  // Makes the batch with these ids current: IdsByTable's features, for this worker's samples. If a
  // batch was announced (BeginNext) during the last one, it must be that batch, still in the same
  // memory; otherwise its ids are exchanged now.
  void Begin(std::span<const IdsView> features);
  PreparedBatch& current() { return *current_; }
  // The ids given to Begin(), by table. Valid as long as the memory that they view.
  std::span<const IdsView> current_ids() const { return current_ids_.by_table.views(); }

  // Call these in this order during the current batch; without BeginNext() the others do nothing.
  // The memory that the ids view must stay until that batch is no longer current.
  void BeginNext(std::span<const IdsView> features);
  void ContinueNext();
  void EndNext();
  // The next batch, if EndNext() has ended its exchange.
  const PreparedBatch* next() const { return state_ == Next::kReady ? next_.get() : nullptr; }

 private:
  const ShardedEmbeddings& embeddings_;
  std::unique_ptr<PreparedBatch> current_, next_;
  enum class Next { kNone, kInFlight, kReady } state_ = Next::kNone;
  struct Ids {
    std::vector<IdsView> features;
    IdsByTable by_table;
  };
  std::span<const IdsView> Assign(std::span<const IdsView> features, Ids* ids) const;
  Ids current_ids_, next_ids_;
};

}  // namespace renzan
