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
#include "renzan/embedding/shard_rows.h"
#include "renzan/embedding/sort_rows.h"
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
// Measured: a tiny run's anonymous memory, and what several workers need besides.
constexpr int64_t kProgram = 12 << 20, kBackend = 4 << 20;

// What all ranks share.
struct Sizes {
  const RunSpec& spec;
  int workers, threads;
  const ParameterLayout& layout;
  int64_t parameters;
  std::vector<int64_t> workspace;  // the columns of a thread's matrices
  ShardingPlan plan;
};

MemoryEstimate OfRank(const Sizes& s, int rank) {
  const Numerics& numerics = s.spec.numerics;
  const MemoryUse& memory = s.spec.memory;
  const int64_t virtual_workers = numerics.virtual_workers;
  const int64_t batch = numerics.batch, n = numerics.samples();
  const int64_t mine =
      VirtualWorkerRange(static_cast<int>(virtual_workers), s.workers, rank).size();
  const FloatType rows = numerics.rows;
  const SparseOptimizerOptions& optimizer = s.spec.sparse_optimizer;
  MemoryEstimate e{.program = kProgram + (s.workers > 1 ? kBackend : 0)};
  const int readers = BatchReaders(s.spec, s.workers, s.threads);
  // The chunks that are fetched, ahead and, by each reader, because they are missing.
  if (memory.data_in_store)
    e.program += (1 + readers) * static_cast<int64_t>(BlockCache::kLargeChunksAtOnce *
                                                      BlockCache::kLargeChunkBytes);

  int64_t lookups = 0, most_lookups = 0;  // of the global batch, in own shards
  int64_t exchanged = 0;  // bytes of pooled rows and gradients: of own samples, of others'
  int64_t gradients = 0;  // bytes
  int64_t num_rows = 0;
  int64_t residuals = 0;                                // bytes of own virtual workers
  int64_t sample_ids = 0;                               // of one sample, all tables
  const auto lookups_of = [](const TableSpec& table) {  // of a sample, with its offset
    return table.multi_hot ? static_cast<int64_t>(table.pooling_factor) + 2 : 1;
  };
  for (const TableSpec& table : s.spec.tables) {
    sample_ids += lookups_of(table);
    const int64_t slots = ErrorFeedbackSlots(table, numerics.error_feedback_rows);
    residuals += mine * (AlignedBuffer::MemoryFor(slots * table.embedding_dim * kFloat) +
                         slots * static_cast<int64_t>(sizeof(int64_t)));
  }
  for (const Shard& shard : s.plan.shards) {
    const TableSpec& table = s.spec.tables[shard.table];
    const double share = static_cast<double>(shard.row_blocks.size()) / table.row_blocks;
    // How many samples look up a row of the shard, one-hot or with many lookups.
    const double bags = std::min(1.0, share * std::max(1.0, table.pooling_factor));
    const int64_t columns = table.block_columns();
    const auto bags_of = [&](int64_t samples) {
      return static_cast<int64_t>(bags * static_cast<double>(samples));
    };
    const auto row_bytes = [&](RowCodec codec) {
      return static_cast<int64_t>(EncodedRowBytes(codec, static_cast<size_t>(columns)));
    };
    const int64_t forward = row_bytes(numerics.forward);
    const int64_t backward = row_bytes(numerics.backward);
    const bool replicated = shard.rank == kEveryRank;
    const int64_t rows_here = ShardRows(table, shard.row_blocks).size();
    const bool reduced = replicated && s.workers > 1 &&
                         ReducesGradients(rows_here, columns, numerics.backward, batch);
    // What a worker holds itself, it pools when it reads it. The gradients of a replicated shard go
    // to all workers, or are reduced.
    exchanged += bags_of(mine * n) * ((shard.on(rank) ? 0 : forward) +
                                      (replicated && !reduced ? s.workers : 1) * backward);
    if (reduced) exchanged += (mine + 2) * kFloat * rows_here * columns;
    if (!shard.on(rank)) continue;
    exchanged +=
        bags_of(batch - mine * n) * ((replicated ? 0 : forward) + (reduced ? 0 : backward));
    // The only worker reads them where it has written them.
    if (s.workers > 1 || numerics.backward != RowCodec::kFloat32)
      gradients += AlignedBuffer::MemoryFor(kFloat * columns * bags_of(batch));
    const int64_t here =
        static_cast<int64_t>(share * static_cast<double>(batch * lookups_of(table))) +
        (share < 1 ? batch : 0);
    lookups += here;
    most_lookups = std::max(most_lookups, here);
    const int64_t row = static_cast<int64_t>(EncodedBytes(rows, static_cast<size_t>(columns)));
    num_rows += rows_here;
    e.tables +=
        AlignedBuffer::MemoryFor(rows_here * row) +
        AlignedBuffer::MemoryFor(rows_here * kFloat * StateFloatsPerRow(optimizer.type, columns)) +
        rows_here / 4;  // two bits: whether it has changed, and whether it has been drawn
  }

  const int64_t states = std::ssize(InfoOf(s.spec.dense_optimizer.type).states);
  // Parameters and their sum of gradients, and each weight packed twice.
  e.dense =
      AlignedBuffer::MemoryFor(s.parameters * kFloat) * (2 + states + 2) +
      TreeReducer::MemoryFor(numerics.virtual_workers, s.workers, rank, s.parameters,
                             numerics.dense_wire) +
      DenseGradients::BytesOf(s.layout, DenseGradientOptionsOf(numerics), static_cast<int>(mine));

  // Two prepared batches of ids and sorted lookups, and what sorting needs.
  const int64_t ids = 2 * lookups * (kRow + static_cast<int64_t>(sizeof(Lookup))) +
                      s.threads * most_lookups * static_cast<int64_t>(sizeof(Lookup));
  const int64_t slice = mine * n * (kFloat * (1 + s.spec.model.num_dense) + kId * sample_ids);
  const int64_t slices = BatchLoader::SlotsFor(readers) * slice;
  const int64_t value = numerics.precision == Precision::kBFloat16 ? 2 : kFloat;
  int64_t workspace = 0;
  // Blocks of columns are a cache line wide, and have an odd number of rows (blocked_matrix.h).
  const int64_t block = 64 / value;
  for (const int64_t columns : s.workspace)
    workspace += AlignedBuffer::MemoryFor((n | 1) * ((columns + block - 1) / block) * 64);
  e.batches = exchanged + gradients + residuals + ids + slices + s.threads * workspace;
  // Evaluation has its own slices and ids, which are not sorted.
  if (memory.evaluates) e.batches += 2 * lookups * kRow + slices;

  // Rows, with their numbers where they are scattered.
  const int64_t copies = memory.max_copies > 0 ? std::min(e.tables, memory.max_copies) : e.tables;
  e.few_copies = std::min(copies, kFewCopiesBytes);
  e.more_copies = copies - e.few_copies;
  e.checkpoint = e.few_copies + num_rows * kRow + residuals +
                 (rank == 0 ? (1 + states) * s.parameters * kFloat : 0) +
                 (memory.checkpoints_in_store ? std::min(kOutputFileBytes, e.tables) : 0);
  return e;
}

}  // namespace

std::vector<MemoryEstimate> EstimateMemoryOfWorkers(const RunSpec& spec, const ShardingPlan& plan,
                                                    int workers, int threads) {
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  const Sizes sizes{.spec = spec,
                    .workers = workers,
                    .threads = PoolThreads(spec, workers, threads),
                    .layout = model->layout(),
                    .parameters = model->layout().size(),
                    .workspace = model->WorkspaceColumns(),
                    .plan = plan};
  std::vector<MemoryEstimate> estimates;
  for (int rank = 0; rank < workers; ++rank) estimates.push_back(OfRank(sizes, rank));
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
  return fmt::format("{} (tables {}), at most {} more while a checkpoint is written",
                     text(estimate.without_checkpoint()), text(estimate.tables),
                     text(estimate.checkpoint + estimate.more_copies));
}

}  // namespace renzan
