#pragma once

// All embedding tables of a model, spread over the workers table by table. Their owners look up and
// pool the whole global batch and send every worker the pooled rows of its own samples; the
// gradients return to the owners, which update each row once. Exchanges are started by one call and
// awaited by another, so that work fits in between.
//
// The wire codec is applied to every pooled row and gradient, even if it stays on this worker, so
// that placement cannot change a value. Not thread-safe unless stated.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/blocked_matrix.h"
#include "renzan/base/float_codec.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/comm/wire_range.h"
#include "renzan/embedding/input_dist.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/embedding/table.h"
#include "renzan/plan/placement.h"

namespace renzan {

struct ShardedEmbeddingsOptions {
  std::vector<TableSpec> tables;  // one embedding_dim for all
  int64_t batch = 0;              // global batch; a multiple of virtual_workers
  int virtual_workers = 1;
  FloatType forward = FloatType::kFloat32;
  FloatType backward = FloatType::kFloat32;
  float backward_scale = 1;  // gradients are multiplied by it for sending; a power of two
  SparseOptimizerOptions optimizer;
  FloatType rows = FloatType::kFloat32;  // in memory
  InitialValues initial_values = InitialValues::kDraw;
  uint64_t seed = 0;
};

// What of a batch depends on its ids only, and may be made while another batch is in training.
struct PreparedBatch {
  InputDist ids;
  std::vector<std::vector<Lookup>> sorted;  // per own table: the lookups by row
};

class ShardedEmbeddings {
 public:
  ShardedEmbeddings(Communicator& comm, ThreadPool& pool, ShardedEmbeddingsOptions options);

  // The tables this worker owns, in table order.
  std::vector<EmbeddingTable>& tables() { return tables_; }
  // The name of their optimizer state in checkpoints, or "".
  const char* state_name() const { return StateName(options_.optimizer.type); }

  std::unique_ptr<PreparedBatch> MakePreparedBatch() const;

  // Pools the rows of the whole batch and starts to send them. The ids must have arrived.
  void LookUp(const PreparedBatch& batch);
  void ReceivePooled();

  // The pooled rows of one of this worker's virtual workers after ReceivePooled: those of table t
  // for its sample i go to row i, from column first_column + t · dim on. Thread-safe.
  void ReadPooled(int virtual_worker, int64_t first_column, BlockedMatrix* out) const;

  // Passes on the gradients of what ReadPooled returned, in the same layout. Thread-safe for
  // different virtual workers.
  void WritePooledGradient(int virtual_worker, int64_t first_column, const BlockedMatrix& gradient);

  // How many gradients of this worker lost range on a float16 wire since the last call.
  WireRange TakeGradientRange();

  // Starts to send the gradients to the owners.
  void SendGradients();
  // Sorts the lookups of one own table, on a thread of the pool. Needs only the ids. Thread-safe
  // for different tables and threads.
  void SortLookups(size_t own_table, int thread, PreparedBatch* batch);
  void ReceiveGradients(const PreparedBatch& batch);

  // After ReceiveGradients and SortLookups: the sum of squares of the gradients of all rows of all
  // tables, the same on every worker and for any placement. Every rank calls it.
  double SquaredGradientNorm(const PreparedBatch& batch);

  // After the same: applies the optimizer once per row of the batch. Returns whether all rows that
  // this worker updated, and their states, are finite.
  bool Update(const PreparedBatch& batch, const SparseStep& step);

 private:
  struct Peer {
    IndexRange virtual_workers;  // the virtual workers assigned to it
    std::vector<size_t> tables;  // the tables it owns
  };

  void Pool(const GlobalIds& ids, size_t own_table, int virtual_worker);
  void GatherGradients(const GlobalIds& ids, size_t own_table, int virtual_worker);
  // Runs of a table's sorted lookups that begin and end at row boundaries. They depend only on the
  // batch.
  struct Run {
    size_t table;
    std::span<const Lookup> lookups;
  };
  void FindRuns(const PreparedBatch& batch);

  // The block of one (table, virtual worker) in a message between the owner of the table and the
  // peer that the virtual worker is assigned to.
  size_t BlockIndex(size_t table_of_owner, const Peer& peer, int virtual_worker) const;

  Communicator& comm_;
  ThreadPool& pool_;
  ShardedEmbeddingsOptions options_;
  int64_t dim_ = 0;
  int64_t samples_per_virtual_worker_ = 0;
  size_t forward_block_bytes_ = 0, backward_block_bytes_ = 0;
  std::vector<Peer> peers_;             // by rank
  std::vector<int> owner_;              // by table
  std::vector<size_t> index_at_owner_;  // by table: its place among its owner's tables
  std::vector<int> assigned_rank_;      // by virtual worker
  std::vector<EmbeddingTable> tables_;

  // Messages by rank. A worker's message to itself is written directly to where it is read.
  using Messages = std::vector<std::vector<std::byte>>;
  Messages pooled_send_, pooled_recv_, gradient_send_, gradient_recv_;

  std::vector<WireRange> gradient_range_;  // by virtual worker assigned to this worker

  std::vector<AlignedBuffer> gradients_;      // per own table: of the global batch [batch, dim]
  std::vector<std::vector<Lookup>> scratch_;  // per thread
  std::vector<Run> runs_;
  std::vector<char> finite_;  // by run

  // Sums of squares for the gradients' norm: of the runs, of this worker's tables, of each peer's
  // tables, and of all tables.
  std::vector<double> of_runs_, of_own_tables_;
  std::vector<std::vector<double>> of_peers_;
  std::vector<std::span<std::byte>> of_peers_parts_;
  std::vector<double> of_tables_;

  Exchange pooled_exchange_, gradient_exchange_;  // last, so that they end before the buffers do
};

}  // namespace renzan
