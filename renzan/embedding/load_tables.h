#pragma once

// Loads this worker's shards from a checkpoint, whatever plan wrote it: each block is found by its
// key. Uses all threads of the pool. Throws kData when a tensor is missing, has another shape or is
// corrupt. If another block cannot be read at all, that error (kNoInput, kIo) takes precedence.

#include <span>

#include "renzan/base/function_ref.h"
#include "renzan/base/thread_pool.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

// Calls body(a reader of the same checkpoint, shard, block) for every block of the shards, on all
// threads. Of the errors, what could not be read is thrown before what is corrupt.
void ForEachBlock(
    CheckpointReader& reader, std::span<EmbeddingShard> shards, ThreadPool& pool,
    FunctionRef<void(CheckpointReader&, EmbeddingShard&, EmbeddingShard::Block&)> body);

// Loads weights only.
void LoadWeights(CheckpointReader& reader, std::span<EmbeddingShard> shards, ThreadPool& pool);

// Loads everything that training resumes with: weights, optimizer states and the residuals of error
// feedback. Marks as dirty the rows in which an increment differs from its base. Also throws kData
// for values that are not finite.
void LoadTables(CheckpointReader& reader, ShardedEmbeddings* embeddings, ThreadPool& pool);

}  // namespace renzan
