#include "renzan/planning/memory_estimate.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/data/batch_loader.h"
#include "renzan/dense/dense_gradients.h"
#include "renzan/embedding/error_feedback.h"
#include "renzan/embedding/idle_rows.h"
#include "renzan/embedding/shard_rows.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/model/grouped_metrics.h"
#include "renzan/plan/cost_model.h"
#include "renzan/plan/replicated_gradients.h"
#include "renzan/planning/device_options.h"
#include "renzan/storage/cache/block_cache.h"
#include "renzan/storage/storage.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/float_codec.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {
namespace {

constexpr int64_t kFloat = sizeof(float), kId = sizeof(int64_t), kRow = sizeof(int32_t);
// Measured: a tiny run's anonymous memory, and what several workers need in addition.
constexpr int64_t kProgram = 12 << 20, kBackend = 4 << 20;

// What all ranks share.
struct Sizes {
  const RunSpec& spec;
  int workers, threads;
  const ParameterLayout& layout;
  int64_t parameters;
  std::vector<int64_t> workspace;  // the columns of one thread's matrices
  std::vector<int64_t> rows;       // the values of its rows
  int64_t items, counts;           // features whose ids blocks want; ids of those that are counted
  ShardingPlan plan;
};

// One worker's memory, part by part.
class WorkerMemory {
 public:
  WorkerMemory(const Sizes& sizes, int rank)
      : sizes_(sizes),
        spec_(sizes.spec),
        numerics_(sizes.spec.numerics),
        rank_(rank),
        own_virtual_workers_(
            VirtualWorkerRange(numerics_.virtual_workers, sizes.workers, rank).size()),
        readers_(BatchReaders(sizes.spec, sizes.workers, sizes.threads)) {
    for (const Shard& shard : sizes.plan.shards) AddShard(shard);
  }

  MemoryEstimate Estimate() const {
    MemoryEstimate e{
        .tables = tables_, .dense = Dense(), .batches = Batches(), .program = Program()};
    AddCheckpoint(&e);
    return e;
  }

 private:
  // Values per sample of a table's ids, including the offset.
  static int64_t LookupsOf(const TableSpec& table) {
    if (!table.multi_hot) return table.bags();
    const double ids = table.pooling_factor * (table.weighted ? 2 : 1);
    return static_cast<int64_t>(ids) + 1 + table.bags();
  }
  int64_t own_samples() const { return own_virtual_workers_ * numerics_.samples(); }
  int64_t dense_states() const { return std::ssize(InfoOf(spec_.dense_optimizer.type).states); }

  void AddShard(const Shard& shard);
  // Bytes that a shard exchanges, whether or not it is on this worker. `reduced`: its gradients are
  // reduced like dense ones.
  int64_t Exchanged(const Shard& shard, bool reduced) const;

  int64_t Program() const;
  int64_t Dense() const;
  int64_t Batches() const;
  int64_t Slices() const;
  int64_t Groups() const;
  int64_t Workspace() const;  // of one thread
  int64_t Residuals() const;  // of own virtual workers
  void AddCheckpoint(MemoryEstimate* e) const;

  const Sizes& sizes_;
  const RunSpec& spec_;
  const Numerics& numerics_;
  const int rank_;
  const int64_t own_virtual_workers_;
  const int readers_;

  // Sums over shards.
  int64_t tables_ = 0;                      // bytes
  int64_t num_rows_ = 0;                    // of own shards
  int64_t lookups_ = 0, most_lookups_ = 0;  // of the global batch, in own shards
  int64_t exchanged_ = 0;  // bytes of pooled rows and gradients: of own samples, of others'
  int64_t gradients_ = 0;  // bytes
};

// At most how many bags of `samples` look up a row of the shard, one-hot or multi-hot.
int64_t BagsOf(const Shard& shard, const TableSpec& table, int64_t samples) {
  const double share = static_cast<double>(shard.row_blocks.size()) / table.row_blocks;
  const auto all = static_cast<double>(table.bags());
  const double bags = std::min(1.0, share * std::max(1.0, table.pooling_factor / all));
  return static_cast<int64_t>(bags * all * static_cast<double>(samples));
}

int64_t WorkerMemory::Exchanged(const Shard& shard, bool reduced) const {
  const TableSpec& table = spec_.tables[shard.table];
  const auto row_bytes = [&](RowCodec codec) {
    return static_cast<int64_t>(EncodedRowBytes(codec, static_cast<size_t>(table.block_columns())));
  };
  const int64_t forward = row_bytes(numerics_.forward), backward = row_bytes(numerics_.backward);
  const bool replicated = shard.rank == kEveryRank, here = shard.on(rank_);
  // Rows that a worker holds itself are pooled when it reads them. The gradients of a replicated
  // shard go to all workers, or are reduced.
  int64_t bytes = BagsOf(shard, table, own_samples()) *
                  ((here ? 0 : forward) + (replicated && !reduced ? sizes_.workers : 1) * backward);
  if (reduced)
    bytes += (own_virtual_workers_ + 2) * kFloat * ShardRows(table, shard.row_blocks).size() *
             table.block_columns();
  if (here)
    bytes += BagsOf(shard, table, numerics_.batch - own_samples()) *
             ((replicated ? 0 : forward) + (reduced ? 0 : backward));
  return bytes;
}

void WorkerMemory::AddShard(const Shard& shard) {
  const TableSpec& table = spec_.tables[shard.table];
  const int64_t columns = table.block_columns();
  const int64_t rows = ShardRows(table, shard.row_blocks).size();
  const bool reduced =
      shard.rank == kEveryRank && sizes_.workers > 1 &&
      ReducesGradients(rows, columns, numerics_.backward, numerics_.batch * table.bags());
  exchanged_ += Exchanged(shard, reduced);
  if (!shard.on(rank_)) return;
  // A single worker reads gradients where they were written.
  if (sizes_.workers > 1 || numerics_.backward != RowCodec::kFloat32)
    gradients_ +=
        AlignedBuffer::MemoryFor(kFloat * columns * BagsOf(shard, table, numerics_.batch));
  const double share = static_cast<double>(shard.row_blocks.size()) / table.row_blocks;
  const int64_t lookups =
      static_cast<int64_t>(share * static_cast<double>(numerics_.batch * LookupsOf(table))) +
      (share < 1 ? numerics_.batch : 0);
  lookups_ += lookups;
  most_lookups_ = std::max(most_lookups_, lookups);
  num_rows_ += rows;
  const int64_t row =
      static_cast<int64_t>(EncodedBytes(numerics_.rows, static_cast<size_t>(columns)));
  tables_ += AlignedBuffer::MemoryFor(rows * row) +
             AlignedBuffer::MemoryFor(rows * kFloat *
                                      StateFloatsPerRow(spec_.sparse_optimizer.type, columns)) +
             rows / 4;  // two bits: whether it has changed, and whether it has been drawn
  if (IdleRowsMove(spec_.sparse_optimizer))
    tables_ += rows * kRow + static_cast<int64_t>(IdleRows::kMostSteps * sizeof(IdleStep));
}

int64_t WorkerMemory::Program() const {
  int64_t bytes = kProgram + (sizes_.workers > 1 ? kBackend : 0);
  // Chunks being fetched: ahead, and by each reader that misses one.
  if (spec_.memory.data_in_store)
    bytes += (1 + readers_) *
             static_cast<int64_t>(BlockCache::kLargeChunksAtOnce * BlockCache::kLargeChunkBytes);
  return bytes;
}

int64_t WorkerMemory::Dense() const {
  // Parameters, the sum of their gradients, and each weight packed twice.
  return AlignedBuffer::MemoryFor(sizes_.parameters * kFloat) * (2 + dense_states() + 2) +
         TreeReducer::MemoryFor(numerics_.virtual_workers, sizes_.workers, rank_, sizes_.parameters,
                                numerics_.dense_wire) +
         DenseGradients::BytesOf(sizes_.layout, DenseGradientOptionsOf(numerics_),
                                 static_cast<int>(own_virtual_workers_));
}

int64_t WorkerMemory::Residuals() const {
  int64_t bytes = 0;
  for (const TableSpec& table : spec_.tables) {
    const int64_t slots = ErrorFeedbackSlots(table, numerics_.error_feedback_rows);
    bytes += AlignedBuffer::MemoryFor(slots * table.embedding_dim * kFloat) +
             slots * static_cast<int64_t>(sizeof(int64_t));
  }
  return own_virtual_workers_ * bytes;
}

int64_t WorkerMemory::Slices() const {
  int64_t ids = 0;  // per sample, all tables
  for (const TableSpec& table : spec_.tables) ids += LookupsOf(table);
  return BatchLoader::SlotsFor(readers_) * own_samples() *
         (kFloat * (1 + spec_.model.num_dense) + kId * ids);
}

// A worker's samples, and those that it receives for its groups; each worker knows the groups of
// all rows by a key.
int64_t WorkerMemory::Groups() const {
  const int64_t copies = sizes_.workers > 1 ? 2 : 1;
  return copies * static_cast<int64_t>(sizeof(GroupedSample)) *
             ((spec_.memory.grouped + sizes_.workers - 1) / sizes_.workers) +
         spec_.memory.key_groups;
}

int64_t WorkerMemory::Workspace() const {
  // Blocks of columns are a cache line wide and have an odd number of rows (blocked_matrix.h).
  const int64_t block = 64 / (numerics_.precision == Precision::kBFloat16 ? 2 : kFloat);
  int64_t bytes = 0;
  for (const int64_t columns : sizes_.workspace)
    bytes +=
        AlignedBuffer::MemoryFor((numerics_.samples() | 1) * ((columns + block - 1) / block) * 64);
  for (const int64_t values : sizes_.rows) bytes += AlignedBuffer::MemoryFor(values * kFloat);
  return bytes + sizes_.items * numerics_.samples() * (kFloat + 2 * kRow);
}

int64_t WorkerMemory::Batches() const {
  // Two prepared batches of ids and sorted lookups, and scratch memory for sorting.
  constexpr int64_t kLookup = sizeof(Lookup);
  const int64_t ids = 2 * lookups_ * (kRow + kLookup) + sizes_.threads * most_lookups_ * kLookup;
  // Evaluation has slices and ids of its own, which are not sorted.
  const int64_t evaluation =
      spec_.memory.evaluates ? 2 * lookups_ * kRow + Slices() + spec_.memory.ranking + Groups() : 0;
  return exchanged_ + gradients_ + Residuals() + ids + Slices() + sizes_.threads * Workspace() +
         sizes_.counts * int64_t{sizeof(int64_t)} + evaluation;
}

void WorkerMemory::AddCheckpoint(MemoryEstimate* e) const {
  const int64_t most = spec_.memory.max_copies;
  const int64_t copies = most > 0 ? std::min(e->tables, most) : e->tables;
  e->few_copies = std::min(copies, kFewCopiesBytes);
  e->more_copies = copies - e->few_copies;
  // Copies of rows, and row numbers where the rows are scattered.
  e->checkpoint = e->few_copies + num_rows_ * kRow + Residuals() +
                  (rank_ == 0 ? (1 + dense_states()) * sizes_.parameters * kFloat : 0) +
                  (spec_.memory.checkpoints_in_store ? std::min(kOutputFileBytes, e->tables) : 0);
}

}  // namespace

std::vector<MemoryEstimate> EstimateMemoryOfWorkers(const RunSpec& spec, const ShardingPlan& plan,
                                                    int workers, int threads) {
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  Sizes sizes{.spec = spec,
              .workers = workers,
              .threads = PoolThreads(spec, workers, threads),
              .layout = model->layout(),
              .parameters = model->layout().size(),
              .workspace = model->WorkspaceColumns(),
              .rows = model->WorkspaceRows(),
              .items = std::ssize(model->items()),
              .counts = 0,
              .plan = plan};
  for (const Model::Item& item : model->items())
    if (item.popularity) sizes.counts += spec.model.tables[item.table].num_ids;
  std::vector<MemoryEstimate> estimates;
  for (int rank = 0; rank < workers; ++rank)
    estimates.push_back(WorkerMemory(sizes, rank).Estimate());
  return estimates;
}

MemoryEstimate MostOf(std::span<const MemoryEstimate> workers) {
  const auto most = [](const MemoryEstimate& worker) {
    return worker.total() + worker.more_copies;
  };
  return *std::max_element(
      workers.begin(), workers.end(),
      [&](const MemoryEstimate& a, const MemoryEstimate& b) { return most(a) < most(b); });
}

MemoryEstimate EstimateMemory(const RunSpec& spec, const ShardingPlan& plan, int workers,
                              int threads) {
  return MostOf(EstimateMemoryOfWorkers(spec, plan, workers, threads));
}

std::string Describe(const MemoryEstimate& estimate) {
  const auto text = [](int64_t bytes) {
    return bytes < int64_t{10} << 30
               ? fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20)
               : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
  };
  const std::string least = text(estimate.checkpoint);
  const std::string most = text(estimate.checkpoint + estimate.more_copies);
  return fmt::format("{} (tables {}); {} more while a checkpoint is written{}",
                     text(estimate.without_checkpoint()), text(estimate.tables), least,
                     most == least ? "" : fmt::format(", at most {} if there is room", most));
}

}  // namespace renzan
