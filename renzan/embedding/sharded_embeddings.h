#pragma once

// All embedding tables of a model, spread over the workers by a sharding plan. The holders of
// shards look up and pool the whole global batch and send every worker the pooled rows of its own
// samples; the gradients return to the holders, which update each row once. Exchanges are started
// by one call and awaited by another, so that work fits in between. docs/sharding.md has a picture.
//
// Every rank constructs it with the same options and makes the same calls. Not thread-safe unless
// stated.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/wire_range.h"
#include "renzan/embedding/column_squares.h"
#include "renzan/embedding/gradient_dist.h"
#include "renzan/embedding/input_dist.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/output_dist.h"
#include "renzan/embedding/shard.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/tensor/blocked_matrix.h"
#include "renzan/tensor/float_codec.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

struct ShardedEmbeddingsOptions {
  std::vector<TableSpec> tables;
  ShardingPlan plan;
  int64_t batch = 0;  // global batch; a multiple of virtual_workers
  int virtual_workers = 1;
  RowCodec forward = RowCodec::kFloat32;
  RowCodec backward = RowCodec::kFloat32;
  float backward_scale = 1;         // gradients are multiplied by it for sending; a power of two
  int64_t error_feedback_rows = 0;  // see ErrorFeedbackSlots; 0: no error feedback
  SparseOptimizerOptions optimizer;
  FloatType rows = FloatType::kFloat32;  // in memory
  InitialValues initial_values = InitialValues::kDraw;
  uint64_t seed = 0;
  MakeRowStore make_store;  // null: MemoryRowStore
};

// The part of a batch that depends only on ids; can be prepared while another batch trains.
struct PreparedBatch {
  InputDist ids;
  // Per held shard, while the batch's rows are pinned: the slots of ids.of_held().rows. Empty if
  // rows are their own slots (RowStore::slots_are_rows).
  std::vector<std::vector<int32_t>> slots;
  std::vector<std::vector<Lookup>> sorted;  // per held shard: the lookups by row
};

class ShardedEmbeddings {
 public:
  ShardedEmbeddings(Communicator& comm, ThreadPool& pool, ShardedEmbeddingsOptions options);

  // The shards that this worker holds, in the order of the plan.
  std::vector<EmbeddingShard>& shards() { return shards_; }
  const ShardMap& map() const { return map_; }
  // Whether this worker writes the shard into checkpoints. Only one worker writes a replicated
  // shard.
  bool Saves(const EmbeddingShard& shard) const {
    return shard.shard.rank != kEveryRank ||
           static_cast<int>(shard.shard.table) % map_.world_size() == map_.rank();
  }
  SparseOptimizerType optimizer() const { return options_.optimizer.type; }
  // How many steps the optimizer's states have seen before step 0 of this run, where they are
  // another run's: as in DenseOptimizer.
  void set_earlier_steps(int64_t steps) { earlier_steps_ = steps; }
  int64_t earlier_steps() const { return earlier_steps_; }

  std::unique_ptr<PreparedBatch> MakePreparedBatch() const;

  // Tells the stores that the rows of this batch will be looked up next. Its ids must have arrived.
  void Prefetch(const PreparedBatch& batch) const;
  // Pins the rows of the whole batch, takes the steps that they have missed, pools them and starts
  // to send them. The ids must have arrived.
  void LookUp(PreparedBatch* batch);
  void ReceivePooled() { output_dist_.Receive(); }
  // After ReceivePooled: OutputDist::Read.
  void ReadPooled(const PreparedBatch& batch, int virtual_worker, std::span<const BagPlace> places,
                  std::span<BlockedMatrix> matrices) const {
    output_dist_.Read(shards_, batch, virtual_worker, places, matrices);
  }
  // Where all rows move, takes the steps that any row of this worker has missed (idle_rows.h). Call
  // it before rows are read otherwise than by LookUp().
  void CatchUp();
  // After that: for each of this worker's shards, how many of its rows move that no sample looks
  // up.
  std::vector<int64_t> MovingRows() const;
  // Call it after the rows and states of this worker's shards have been set.
  void RowsWereSet();
  // Unpins the rows that LookUp() pinned.
  void Unpin(PreparedBatch* batch);

  // Call it before the first WritePooledGradient of a batch. `measure`: whether to fill
  // GradientErrors().
  void BeginGradients(const PreparedBatch& batch, bool measure = false) {
    gradient_dist_.Begin(batch.ids, measure);
  }
  // GradientDist::Write.
  void WritePooledGradient(const PreparedBatch& batch, std::span<const IdsView> bags,
                           int virtual_worker, std::span<const BagPlace> places,
                           std::span<const BlockedMatrix> gradients) {
    gradient_dist_.Write(batch.ids, bags, virtual_worker, places, gradients);
  }
  WireRange TakeGradientRange() { return gradient_dist_.TakeRange(); }
  // GradientDist::errors.
  const std::vector<std::vector<WireError>>& GradientErrors() const {
    return gradient_dist_.errors();
  }
  ErrorFeedback& error_feedback() { return gradient_dist_.error_feedback(); }
  void SendGradients(const PreparedBatch& batch) { gradient_dist_.Send(batch.ids); }
  // Sorts the lookups of one of this worker's shards, on a thread of the pool, unless LookUp() had
  // to. Needs only the ids. Thread-safe for different shards and threads.
  void SortLookups(size_t held, int thread, PreparedBatch* batch);
  void ReceiveGradients(const PreparedBatch& batch) { gradient_dist_.Receive(batch.ids); }

  // After ReceiveGradients and SortLookups: the sum of squares of the gradients of all rows of all
  // tables, the same on every worker and for any placement. Every rank calls it.
  double SquaredGradientNorm(const PreparedBatch& batch);

  // Also after ReceiveGradients and SortLookups: applies the optimizer once per row of the batch.
  // Returns whether all rows that this worker updated, and their states, are finite. Every rank
  // calls it, before Unpin().
  bool Update(const PreparedBatch& batch, const SparseStep& step);

 private:
  // Lookups of a block that begin and end at row boundaries. They depend only on the batch.
  struct Run {
    size_t held, block;
    std::span<const Lookup> lookups;
    // How many distinct rows of the shard come before the run; only counted for ColumnSquares.
    size_t first_row;
  };
  // Rows of a shard that a task pins, and where their slots go.
  struct PinTask {
    size_t held;
    std::span<const int32_t> rows;
    std::span<int32_t> slots;
  };
  void Pin(PreparedBatch* batch);
  void Sort(size_t held, int thread, PreparedBatch* batch);
  void CatchUp(PreparedBatch* batch);
  bool ShouldCatchUp() const;
  void FindRuns(const PreparedBatch& batch);
  RowGradients GradientsOf(const PreparedBatch& batch, const Run& run) const;
  void ExchangeSquares(const PreparedBatch& batch, const SparseStep& step);

  Communicator& comm_;
  ThreadPool& pool_;
  ShardedEmbeddingsOptions options_;
  ShardMap map_;
  std::vector<EmbeddingShard> shards_;
  OutputDist output_dist_;
  GradientDist gradient_dist_;
  ColumnSquares column_squares_;
  bool exchanges_squares_;
  int64_t earlier_steps_ = 0;

  std::vector<std::vector<Lookup>> scratch_;  // per thread
  std::vector<PinTask> pins_;
  std::vector<Run> runs_;
  std::vector<char> finite_;  // by run

  // Sums of squares for the gradient norm: by run; by block of this worker's shards, and of each
  // worker's; by block of each table; by table.
  std::vector<double> of_runs_, of_own_blocks_;
  std::vector<std::vector<double>> of_peers_;
  std::vector<std::span<std::byte>> of_peers_parts_;
  std::vector<std::vector<double>> of_blocks_;
  std::vector<double> of_tables_;
};

}  // namespace renzan
