#pragma once

// What the stages of a step (host_step.h) pass on: a batch's way through them can be read from
// these types. Each is made by one stage and taken by the next, within one step.

#include <span>

#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

// The batch's ids, on the workers that hold their rows: what each shard looks up.
struct ExchangedIds {
  PreparedBatch& batch;
  std::span<const IdsView> own;  // this worker's samples' ids, by table
};

// The pooled rows of the batch, looked up and on their way to the workers that have its samples.
struct PooledInFlight {
  ExchangedIds ids;
};
// The pooled rows of this worker's samples, which have arrived: ShardedEmbeddings::ReadPooled.
struct PooledRows {
  ExchangedIds ids;
};

// The gradients of the pooled rows of this worker's samples.
struct PooledGradients {
  ExchangedIds ids;
};
// The same, on their way to the holders of the rows.
struct GradientsInFlight {
  ExchangedIds ids;
};
// The gradients of all rows of the batch that this worker holds.
struct ArrivedGradients {
  ExchangedIds ids;
};

// The dense gradients of this worker's virtual workers; their sum over all virtual workers, while
// it is computed and exchanged; and the finished sum.
struct DenseLeaves {};
struct DenseSumInFlight {};
struct DenseSum {
  std::span<float> values;
};

struct BackwardResult {
  PooledGradients pooled;
  DenseLeaves dense;
};

}  // namespace renzan
