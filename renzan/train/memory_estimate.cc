#include "renzan/train/memory_estimate.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/error.h"
#include "renzan/base/float_codec.h"
#include "renzan/base/row_codec.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/data/batch_loader.h"
#include "renzan/embedding/error_feedback.h"
#include "renzan/embedding/shard_rows.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/model/dot_interaction.h"
#include "renzan/plan/cost_model.h"
#include "renzan/plan/replicated_gradients.h"
#include "renzan/storage/cache/block_cache.h"
#include "renzan/storage/storage.h"
#include "renzan/train/dense_gradients.h"
#include "renzan/train/device_options.h"
#include "renzan/train/model_options.h"

namespace renzan {
namespace {

constexpr int64_t kFloat = sizeof(float), kId = sizeof(int64_t), kRow = sizeof(int32_t);
// Measured: a tiny run's anonymous memory, and what several workers need besides.
constexpr int64_t kProgram = 12 << 20, kBackend = 4 << 20;

// The columns of the matrices of a thread's workspace (Model::Workspace).
using Columns = std::vector<int64_t>;

// An MLP's outputs and two gradients that alternate.
void AddMlp(int64_t in, const std::vector<int64_t>& widths, int64_t last, Columns* columns) {
  columns->insert(columns->end(), widths.begin(), widths.end());
  columns->push_back(last);
  int64_t widest = std::max(in, last);
  for (const int64_t width : widths) widest = std::max(widest, width);
  columns->insert(columns->end(), 2, widest);
}

Columns WorkspaceColumns(const ModelOptions& m) {
  const int64_t features = FeaturesPerSample(m);
  Columns columns = {m.num_dense, features, features, m.embedding_dim};
  AddMlp(m.num_dense, m.bottom_mlp, m.embedding_dim, &columns);
  if (m.type == "dlrm") {
    const int64_t vectors = 1 + std::ssize(m.tables);
    const int64_t interactions = DotInteractionWidth(vectors, m.embedding_dim);
    int64_t projected = 0, widest = 0;  // rows
    for (const TableInput& table : m.tables) {
      if (table.dim == m.embedding_dim) continue;
      projected += table.dim;
      widest = std::max(widest, table.dim);
    }
    if (projected > 0) {
      const int64_t all = vectors * m.embedding_dim;
      columns.insert(columns.end(), {all, all, projected, widest, m.embedding_dim});
    }
    columns.insert(columns.end(), 2, interactions);
    AddMlp(interactions, m.top_mlp, 1, &columns);
    return columns;
  }
  for (int layer = 0; layer < m.cross_layers; ++layer)
    columns.insert(columns.end(), {features, m.cross_rank, features});
  columns.insert(columns.end(), {features, features, m.cross_rank});
  AddMlp(features, m.top_mlp, 1, &columns);
  return columns;
}

int64_t OptimizerStates(const std::string& dense_optimizer) {
  return dense_optimizer == "adam" ? 2 : dense_optimizer == "adagrad" ? 1 : 0;
}

// What all ranks share.
struct Sizes {
  const TrainConfig& config;
  int workers, threads;
  const ParameterLayout& layout;
  int64_t parameters;
  int64_t num_dense;
  Columns workspace;
  std::vector<TableSpec> tables;
  ShardingPlan plan;
};

MemoryEstimate OfRank(const Sizes& s, int rank) {
  const int64_t virtual_workers = s.config.numerics.virtual_workers;
  const int64_t batch = s.config.training.batch_size, n = batch / virtual_workers;
  const int64_t mine =
      VirtualWorkerRange(static_cast<int>(virtual_workers), s.workers, rank).size();
  const FloatType rows = ParseFloatType(s.config.numerics.embedding_precision);
  const SparseOptimizerOptions optimizer = SparseOptionsOf(s.config.optimizer.sparse);
  MemoryEstimate e{.program = kProgram + (s.workers > 1 ? kBackend : 0)};
  const int readers = BatchReaders(s.config, s.workers, s.threads);
  // The chunks that are fetched, ahead and, by each reader, because they are missing.
  if (IsInStore(s.config.data.train.path))
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
  for (const TableSpec& table : s.tables) {
    sample_ids += lookups_of(table);
    const int64_t slots = ErrorFeedbackSlots(table, s.config.comm.error_feedback_rows);
    residuals += mine * (AlignedBuffer::MemoryFor(slots * table.embedding_dim * kFloat) +
                         slots * static_cast<int64_t>(sizeof(int64_t)));
  }
  for (const Shard& shard : s.plan.shards) {
    const TableSpec& table = s.tables[shard.table];
    const double share = static_cast<double>(shard.row_blocks.size()) / table.row_blocks;
    // How many samples look up a row of the shard, one-hot or with many lookups.
    const double bags = std::min(1.0, share * std::max(1.0, table.pooling_factor));
    const int64_t columns = table.block_columns();
    const auto bags_of = [&](int64_t samples) {
      return static_cast<int64_t>(bags * static_cast<double>(samples));
    };
    const auto row_bytes = [&](const std::string& codec) {
      return static_cast<int64_t>(
          EncodedRowBytes(ParseRowCodec(codec), static_cast<size_t>(columns)));
    };
    const int64_t forward = row_bytes(s.config.comm.forward);
    const int64_t backward = row_bytes(s.config.comm.backward);
    const bool replicated = shard.rank == kEveryRank;
    const int64_t rows_here = ShardRows(table, shard.row_blocks).size();
    const bool reduced =
        replicated && s.workers > 1 &&
        ReducesGradients(rows_here, columns, ParseRowCodec(s.config.comm.backward), batch);
    // What a worker holds itself, it pools when it reads it. The gradients of a replicated shard go
    // to all workers, or are reduced.
    exchanged += bags_of(mine * n) * ((shard.on(rank) ? 0 : forward) +
                                      (replicated && !reduced ? s.workers : 1) * backward);
    if (reduced) exchanged += (mine + 2) * kFloat * rows_here * columns;
    if (!shard.on(rank)) continue;
    exchanged +=
        bags_of(batch - mine * n) * ((replicated ? 0 : forward) + (reduced ? 0 : backward));
    // The only worker reads them where it has written them.
    if (s.workers > 1 || s.config.comm.backward != "fp32")
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

  const int64_t states = OptimizerStates(s.config.optimizer.dense.type);
  const Precision precision = PrecisionOf(s.config.numerics);
  // Parameters and their sum of gradients, and each weight packed twice.
  e.dense =
      AlignedBuffer::MemoryFor(s.parameters * kFloat) * (2 + states + 2) +
      TreeReducer::MemoryFor(s.config.numerics.virtual_workers, s.workers, rank, s.parameters,
                             ParseFloatType(s.config.comm.dense)) +
      DenseGradients::BytesOf(s.layout, DenseGradientOptionsOf(s.config), static_cast<int>(mine));

  // Two prepared batches of ids and sorted lookups, and what sorting needs.
  const int64_t ids = 2 * lookups * (kRow + static_cast<int64_t>(sizeof(Lookup))) +
                      s.threads * most_lookups * static_cast<int64_t>(sizeof(Lookup));
  const int64_t slice = mine * n * (kFloat * (1 + s.num_dense) + kId * sample_ids);
  const int64_t slices = BatchLoader::SlotsFor(readers) * slice;
  const int64_t value = precision == Precision::kBFloat16 ? 2 : kFloat;
  int64_t workspace = 0;
  // Blocks of columns are a cache line wide, and have an odd number of rows (blocked_matrix.h).
  const int64_t block = 64 / value;
  for (const int64_t columns : s.workspace)
    workspace += AlignedBuffer::MemoryFor((n | 1) * ((columns + block - 1) / block) * 64);
  e.batches = exchanged + gradients + residuals + ids + slices + s.threads * workspace;
  // Evaluation has its own slices and ids, which are not sorted.
  if (!s.config.data.eval.path.empty()) e.batches += 2 * lookups * kRow + slices;

  // Rows, with their numbers where they are scattered.
  const int64_t copies = s.config.checkpoint.max_copies_mib > 0
                             ? std::min(e.tables, s.config.checkpoint.max_copies_mib << 20)
                             : e.tables;
  e.few_copies = std::min(copies, kFewCopiesBytes);
  e.more_copies = copies - e.few_copies;
  e.checkpoint = e.few_copies + num_rows * kRow + residuals +
                 (rank == 0 ? (1 + states) * s.parameters * kFloat : 0) +
                 (IsInStore(s.config.checkpoint.dir) ? std::min(kOutputFileBytes, e.tables) : 0);
  return e;
}

}  // namespace

std::vector<MemoryEstimate> EstimateMemoryOfWorkers(const TrainConfig& config,
                                                    const DatasetSchema& schema,
                                                    std::span<const double> pooling_factors,
                                                    const ShardingPlan& plan, int workers,
                                                    int threads) {
  const ModelOptions options = ModelOptionsOf(config, schema);
  const std::unique_ptr<Model> model = MakeModel(options);
  const Sizes sizes{.config = config,
                    .workers = workers,
                    .threads = PoolThreads(config, workers, threads),
                    .layout = model->layout(),
                    .parameters = model->layout().size(),
                    .num_dense = options.num_dense,
                    .workspace = WorkspaceColumns(options),
                    .tables = TablesOf(config, schema, pooling_factors),
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

MemoryEstimate EstimateMemory(const TrainConfig& config, const DatasetSchema& schema,
                              std::span<const double> pooling_factors, const ShardingPlan& plan,
                              int workers, int threads) {
  return MostOf(EstimateMemoryOfWorkers(config, schema, pooling_factors, plan, workers, threads));
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
