#include "renzan/embedding/sharded_embeddings.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/optim/gradient_norm.h"

namespace renzan {

ShardedEmbeddings::ShardedEmbeddings(Communicator& comm, ThreadPool& pool,
                                     ShardedEmbeddingsOptions options)
    : comm_(comm),
      pool_(pool),
      options_(std::move(options)),
      map_(options_.tables, options_.plan, comm.world_size(), comm.rank(), options_.virtual_workers,
           options_.batch),
      output_dist_(comm, pool, map_, options_.forward),
      gradient_dist_(comm, pool, map_,
                     {.wire = options_.backward,
                      .scale = options_.backward_scale,
                      .error_feedback_rows = options_.error_feedback_rows}),
      column_squares_(comm, map_),
      exchanges_squares_(options_.optimizer.type == SparseOptimizerType::kRowWiseAdagrad &&
                         std::any_of(options_.tables.begin(), options_.tables.end(),
                                     [](const TableSpec& t) { return t.column_blocks > 1; })) {
  for (const size_t s : map_.held())
    shards_.emplace_back(map_.table_of(s), map_.shards()[s], options_.rows, options_.optimizer,
                         options_.initial_values, options_.seed, &pool, options_.make_store);
  scratch_.resize(static_cast<size_t>(pool.num_threads()));

  for (int r = 0; r < comm.world_size(); ++r) {
    size_t blocks = 0;
    for (const size_t s : map_.held_by(r))
      blocks += static_cast<size_t>(map_.shards()[s].row_blocks.size());
    of_peers_.emplace_back(blocks);
  }
  for (std::vector<double>& part : of_peers_)
    of_peers_parts_.push_back(std::as_writable_bytes(std::span(part)));
  of_own_blocks_.resize(of_peers_[static_cast<size_t>(comm.rank())].size());
  for (const TableSpec& table : options_.tables)
    of_blocks_.emplace_back(static_cast<size_t>(table.row_blocks * table.column_blocks));
  of_tables_.resize(options_.tables.size());
}

std::unique_ptr<PreparedBatch> ShardedEmbeddings::MakePreparedBatch() const {
  return std::unique_ptr<PreparedBatch>(
      new PreparedBatch{.ids = {comm_, pool_, map_},
                        .slots = std::vector<std::vector<int32_t>>(shards_.size()),
                        .sorted = std::vector<std::vector<Lookup>>(shards_.size())});
}

void ShardedEmbeddings::Prefetch(const PreparedBatch& batch) const {
  for (size_t held = 0; held < shards_.size(); ++held)
    shards_[held].store->Prefetch(batch.ids.of_held(held).rows);
}

void ShardedEmbeddings::LookUp(PreparedBatch* batch) {
  Pin(batch);
  if (IdleRowsMove(options_.optimizer)) CatchUp(batch);
  output_dist_.Send(shards_, *batch);
}

void ShardedEmbeddings::Pin(PreparedBatch* batch) {
  constexpr size_t kRows = 4096;  // of a task
  pins_.clear();
  for (size_t held = 0; held < shards_.size(); ++held) {
    const RowStore& store = *shards_[held].store;
    if (!store.NeedsPinning()) continue;
    const std::span<const int32_t> rows = batch->ids.of_held(held).rows;
    std::vector<int32_t>& slots = batch->slots[held];
    slots.resize(store.slots_are_rows() ? 0 : rows.size());
    for (size_t first = 0; first < rows.size(); first += kRows) {
      const size_t n = std::min(kRows, rows.size() - first);
      pins_.push_back({held, rows.subspan(first, n),
                       slots.empty() ? std::span<int32_t>() : std::span(slots).subspan(first, n)});
    }
  }
  pool_.ParallelTasks(pins_.size(), [&](int, size_t i) {
    shards_[pins_[i].held].store->Pin(pins_[i].rows, pins_[i].slots);
  });
}

void ShardedEmbeddings::Unpin(PreparedBatch* batch) {
  for (size_t held = 0; held < shards_.size(); ++held) {
    if (shards_[held].store->slots_are_rows()) continue;
    shards_[held].store->Unpin(batch->ids.of_held(held).rows);
    batch->slots[held].clear();
  }
}

// A row that several samples look up must catch up once.
void ShardedEmbeddings::CatchUp(PreparedBatch* batch) {
  pool_.ParallelTasks(shards_.size(), [&](int thread, size_t held) { Sort(held, thread, batch); });
  FindRuns(*batch);
  const TraceSpan span(kCatchUpSpan);
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    EmbeddingShard& shard = shards_[runs_[i].held];
    if (shard.idle && shard.idle->steps() > 0)
      CatchUpRowsOf(runs_[i].lookups, runs_[i].block, &shard);
  });
}

void ShardedEmbeddings::CatchUp() {
  constexpr int64_t kRows = 4096;  // of a task
  struct Part {
    EmbeddingShard* shard;
    size_t block;
    int64_t first, end;  // rows of the shard
  };
  std::vector<Part> parts;
  for (EmbeddingShard& shard : shards_) {
    if (!shard.idle || shard.idle->steps() == 0) continue;
    for (size_t block = 0; block < shard.blocks.size(); ++block) {
      const int64_t begin = shard.blocks[block].first_row;
      const int64_t end = begin + shard.blocks[block].num_rows;
      for (int64_t first = begin; first < end; first += kRows)
        parts.push_back({&shard, block, first, std::min(end, first + kRows)});
    }
  }
  pool_.ParallelTasks(parts.size(), [&](int, size_t i) {
    std::vector<int32_t> rows(static_cast<size_t>(parts[i].end - parts[i].first));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(parts[i].first));
    CatchUpRows(rows, parts[i].block, parts[i].shard);
  });
  for (EmbeddingShard& shard : shards_)
    if (shard.idle && shard.idle->steps() > 0) shard.idle->Forget();
}

// While a checkpoint is being written, rows that change are copied: these would be all.
bool ShardedEmbeddings::ShouldCatchUp() const {
  const auto is_viewed = [](const EmbeddingShard& shard) {
    return std::ranges::any_of(shard.blocks,
                               [](const auto& b) { return b.weights_view != nullptr; });
  };
  return std::ranges::any_of(shards_,
                             [](const EmbeddingShard& shard) {
                               return shard.idle && shard.idle->steps() >= IdleRows::kMostSteps;
                             }) &&
         std::ranges::none_of(shards_, is_viewed);
}

std::vector<int64_t> ShardedEmbeddings::MovingRows() const {
  std::vector<int64_t> moving;
  for (const EmbeddingShard& shard : shards_)
    moving.push_back(shard.idle ? shard.idle->moving() : 0);
  return moving;
}

void ShardedEmbeddings::RowsWereSet() {
  for (EmbeddingShard& shard : shards_)
    if (shard.idle) shard.idle->Restart();
}

void ShardedEmbeddings::SortLookups(size_t held, int thread, PreparedBatch* batch) {
  if (!IdleRowsMove(options_.optimizer)) Sort(held, thread, batch);
}

void ShardedEmbeddings::Sort(size_t held, int thread, PreparedBatch* batch) {
  const TraceSpan span("sort lookups");
  const ShardIds& ids = batch->ids.of_held(held);
  std::vector<Lookup>& sorted = batch->sorted[held];
  sorted.clear();
  if (ids.weights.empty()) {
    for (size_t bag = 0; bag < ids.num_bags(); ++bag)
      for (const int32_t row : ids.Bag(bag))
        sorted.push_back(MakeLookup(static_cast<uint32_t>(row), static_cast<uint32_t>(bag)));
  } else {
    // The weights of a bag's rows differ, so that a lookup must know which of them it is.
    for (size_t i = 0; i < ids.rows.size(); ++i)
      sorted.push_back(MakeLookup(static_cast<uint32_t>(ids.rows[i]), static_cast<uint32_t>(i)));
  }
  SortByRow(&sorted, &scratch_[static_cast<size_t>(thread)], shards_[held].rows.size());
}

void ShardedEmbeddings::FindRuns(const PreparedBatch& batch) {
  constexpr size_t kRun = 1024;
  runs_.clear();
  for (size_t held = 0; held < shards_.size(); ++held) {
    const std::span<const Lookup> lookups = batch.sorted[held];
    const bool counts = exchanges_squares_ && column_squares_.Needs(held);
    const auto end_of_row = [&](size_t from, int64_t row) {
      const Lookup last = MakeLookup(static_cast<uint32_t>(row), ~uint32_t{0});
      return static_cast<size_t>(
          std::upper_bound(lookups.begin() + static_cast<int64_t>(from), lookups.end(), last) -
          lookups.begin());
    };
    size_t begin = 0, rows = 0;
    for (size_t block = 0; block < shards_[held].blocks.size(); ++block) {
      const EmbeddingShard::Block& b = shards_[held].blocks[block];
      const size_t end_of_block = end_of_row(begin, b.first_row + b.num_rows - 1);
      for (size_t end; begin < end_of_block; begin = end) {
        // Extends the run to the end of the row in which the usual length would end.
        end = std::min(begin + kRun, end_of_block);
        end = end_of_row(end, RowOf(lookups[end - 1]));
        runs_.push_back({held, block, lookups.subspan(begin, end - begin), rows});
        if (!counts) continue;
        for (size_t i = begin; i < end; ++i)
          rows += i == begin || RowOf(lookups[i]) != RowOf(lookups[i - 1]);
      }
    }
    if (counts) column_squares_.of_held(held).resize(rows);
  }
}

RowGradients ShardedEmbeddings::GradientsOf(const PreparedBatch& batch, const Run& run) const {
  const ShardIds& ids = batch.ids.of_held(run.held);
  return {.lookups = run.lookups,
          .pooled = gradient_dist_.of_held(run.held),
          .virtual_worker = ids.virtual_worker.data(),
          .sums = gradient_dist_.sums_of_held(run.held),
          .weights = ids.weights.empty() ? nullptr : ids.weights.data(),
          .bags = ids.bag_of_row.data()};
}

double ShardedEmbeddings::SquaredGradientNorm(const PreparedBatch& batch) {
  FindRuns(batch);
  of_runs_.resize(runs_.size());
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    const EmbeddingShard& shard = shards_[runs_[i].held];
    of_runs_[i] = shard.table.frozen
                      ? 0
                      : renzan::SquaredGradientNorm(GradientsOf(batch, runs_[i]), shard.dim());
  });
  const std::span<double> terms = of_runs_;
  size_t next = 0, begin = 0;
  for (size_t held = 0; held < shards_.size(); ++held)
    for (size_t block = 0; block < shards_[held].blocks.size(); ++block) {
      size_t end = begin;
      while (end < runs_.size() && runs_[end].held == held && runs_[end].block == block) ++end;
      of_own_blocks_[next++] = TreeSum(terms.subspan(begin, end - begin));
      begin = end;
    }

  // Every worker gets the sums of all blocks and adds them in the tables' order.
  comm_.AllGatherV(std::as_bytes(std::span(of_own_blocks_)), of_peers_parts_);
  for (int r = 0; r < map_.world_size(); ++r) {
    const double* of_block = of_peers_[static_cast<size_t>(r)].data();
    for (const size_t s : map_.held_by(r)) {
      const Shard& shard = map_.shards()[s];
      const int columns = map_.table_of(s).column_blocks;
      for (int block = shard.row_blocks.begin; block < shard.row_blocks.end; ++block)
        of_blocks_[shard.table][static_cast<size_t>(block * columns + shard.column_block)] =
            *of_block++;
    }
  }
  for (size_t t = 0; t < of_tables_.size(); ++t) of_tables_[t] = TreeSum(of_blocks_[t]);
  return TreeSum(of_tables_);
}

void ShardedEmbeddings::ExchangeSquares(const PreparedBatch& batch, const SparseStep& step) {
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    const Run& run = runs_[i];
    if (!column_squares_.Needs(run.held)) return;
    SquaresForStep(options_.optimizer, step, GradientsOf(batch, run), run.block, shards_[run.held],
                   column_squares_.of_held(run.held).data() + run.first_row);
  });
  column_squares_.ExchangeThem();
}

bool ShardedEmbeddings::Update(const PreparedBatch& batch, const SparseStep& step) {
  FindRuns(batch);
  if (exchanges_squares_) ExchangeSquares(batch, step);
  for (EmbeddingShard& shard : shards_)
    if (shard.idle) shard.idle->Miss(IdleStepOf(options_.optimizer, step, shard));
  finite_.assign(runs_.size(), 1);
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    const Run& run = runs_[i];
    const float* means = nullptr;
    if (exchanges_squares_ && column_squares_.Needs(run.held))
      means = column_squares_.means_of_held(run.held).data() + run.first_row;
    finite_[i] = ApplySparse(options_.optimizer, step, GradientsOf(batch, run), means, run.block,
                             &shards_[run.held]);
  });
  if (ShouldCatchUp()) {
    const TraceSpan span(kCatchUpSpan);
    CatchUp();
  }
  return std::find(finite_.begin(), finite_.end(), 0) == finite_.end();
}

}  // namespace renzan
