#pragma once

// One worker's part of a model: the dense parameters and their optimizer, which every worker has a
// copy of, and its shards of the tables. This is what is trained, saved, loaded and evaluated; it
// computes nothing.
//
// Every rank constructs it with the same specification and plan. Not thread-safe.

#include <cstdint>
#include <memory>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/embedding/sharded_embeddings.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

class ModelState {
 public:
  // `initial_values`: kZero is enough for a model that is about to be loaded.
  ModelState(const RunSpec& spec, const ShardingPlan& plan, Communicator& comm, ThreadPool& pool,
             InitialValues initial_values = InitialValues::kDraw);

  const RunSpec& spec() const { return spec_; }
  const Model& model() const { return *model_; }
  const std::vector<TableSpec>& tables() const { return spec_.tables; }

  // The flat dense parameters (ParameterLayout).
  AlignedBuffer& parameters() { return parameters_; }
  DenseOptimizer& dense_optimizer() { return dense_optimizer_; }
  ShardedEmbeddings& embeddings() { return embeddings_; }

  // Call it after parameters, optimizer states or rows have changed. Copies in another form
  // (packed, on a GPU) are out of date if their version differs.
  void Changed() { ++version_; }
  int64_t version() const { return version_; }

  // The virtual workers that are assigned to this worker, and their samples of the global batch.
  IndexRange virtual_workers() const { return embeddings_.map().own(); }
  int64_t slice_begin() const { return virtual_workers().begin * spec_.numerics.samples(); }
  int64_t slice_end() const { return virtual_workers().end * spec_.numerics.samples(); }

  // The threads that run its steps; also used for saving and loading.
  ThreadPool& pool() { return pool_; }

 private:
  RunSpec spec_;
  ThreadPool& pool_;
  std::unique_ptr<Model> model_;
  ShardedEmbeddings embeddings_;
  AlignedBuffer parameters_;
  DenseOptimizer dense_optimizer_;
  int64_t version_ = 0;
};

}  // namespace renzan
