#pragma once

// Loads this worker's shards from a checkpoint, whatever plan wrote it: each block is found by its
// key. On all threads of the pool. Throws kData when a tensor is missing, has another shape or is
// corrupt, and what cannot be read at all (kNoInput, kIo) before that.

#include <span>

#include "renzan/base/thread_pool.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

// Weights alone.
void LoadWeights(CheckpointReader& reader, std::span<EmbeddingShard> shards, ThreadPool& pool);

// Everything that training continues with: weights, optimizer states, residuals of error feedback,
// and as dirty rows those that differ from the base of an increment. Throws kData for values that
// are not finite, too.
void LoadTables(CheckpointReader& reader, ShardedEmbeddings* embeddings, ThreadPool& pool);

}  // namespace renzan
