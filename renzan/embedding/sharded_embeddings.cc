#include "renzan/embedding/sharded_embeddings.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/embedding/kernels.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan {
namespace {

// All-to-all of everything except this rank's own part.
void PostToPeers(const Communicator& comm, const char* operation,
                 const std::vector<std::vector<std::byte>>& send,
                 std::vector<std::vector<std::byte>>* recv, Exchange* exchange) {
  if (comm.world_size() == 1) return;
  const size_t me = static_cast<size_t>(comm.rank());
  thread_local std::vector<std::span<const std::byte>> from;
  thread_local std::vector<std::span<std::byte>> to;
  from.assign(send.begin(), send.end());
  to.assign(recv->begin(), recv->end());
  from[me] = {};
  to[me] = {};
  exchange->Post(operation, from, to);
}

void WaitForPeers(Exchange* exchange) {
  if (exchange->in_flight()) exchange->Wait();
}

}  // namespace

ShardedEmbeddings::ShardedEmbeddings(Communicator& comm, ThreadPool& pool,
                                     ShardedEmbeddingsOptions options)
    : comm_(comm),
      pool_(pool),
      options_(std::move(options)),
      pooled_exchange_(comm),
      gradient_exchange_(comm) {
  const int world_size = comm.world_size();
  const size_t me = static_cast<size_t>(comm.rank());
  CHECK(options_.batch % options_.virtual_workers == 0);
  samples_per_virtual_worker_ = options_.batch / options_.virtual_workers;
  dim_ = options_.tables.empty() ? 0 : options_.tables[0].embedding_dim;
  const size_t block = static_cast<size_t>(samples_per_virtual_worker_ * dim_);
  forward_block_bytes_ = EncodedBytes(options_.forward, block);
  backward_block_bytes_ = EncodedBytes(options_.backward, block);

  owner_ = PlaceTableWise(options_.tables, world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    Peer peer{VirtualWorkerRange(options_.virtual_workers, world_size, rank), {}};
    for (int v = peer.virtual_workers.begin; v < peer.virtual_workers.end; ++v)
      assigned_rank_.push_back(rank);
    peers_.push_back(std::move(peer));
  }
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    std::vector<size_t>& owned = peers_[static_cast<size_t>(owner_[t])].tables;
    index_at_owner_.push_back(owned.size());
    owned.push_back(t);
  }
  for (size_t t : peers_[me].tables) {
    CHECK(options_.tables[t].embedding_dim == dim_);
    tables_.emplace_back(options_.tables[t], options_.rows, options_.optimizer,
                         options_.initial_values, options_.seed, pool);
    gradients_.emplace_back(static_cast<size_t>(options_.batch * dim_));
  }
  gradient_range_.resize(static_cast<size_t>(peers_[me].virtual_workers.size()));
  scratch_.resize(static_cast<size_t>(pool.num_threads()));

  const size_t peers = peers_.size();
  pooled_send_.resize(peers);
  pooled_recv_.resize(peers);
  gradient_send_.resize(peers);
  gradient_recv_.resize(peers);
  of_own_tables_.resize(tables_.size());
  for (const Peer& peer : peers_) of_peers_.emplace_back(peer.tables.size());
  for (std::vector<double>& part : of_peers_)
    of_peers_parts_.push_back(std::as_writable_bytes(std::span(part)));
  of_tables_.resize(options_.tables.size());
  const auto num_virtual_workers = [&](size_t rank) {
    return static_cast<size_t>(peers_[rank].virtual_workers.size());
  };
  for (size_t r = 0; r < peers; ++r) {
    const size_t as_owner = r == me ? 0 : peers_[me].tables.size() * num_virtual_workers(r);
    const size_t as_peer = peers_[r].tables.size() * num_virtual_workers(me);
    pooled_send_[r].resize(as_owner * forward_block_bytes_);
    pooled_recv_[r].resize(as_peer * forward_block_bytes_);
    gradient_send_[r].resize(as_peer * backward_block_bytes_);
    gradient_recv_[r].resize(as_owner * backward_block_bytes_);
  }
}

size_t ShardedEmbeddings::BlockIndex(size_t table_of_owner, const Peer& peer,
                                     int virtual_worker) const {
  const IndexRange range = peer.virtual_workers;
  return table_of_owner * static_cast<size_t>(range.size()) +
         static_cast<size_t>(virtual_worker - range.begin);
}

std::unique_ptr<PreparedBatch> ShardedEmbeddings::MakePreparedBatch() const {
  std::vector<int64_t> samples;
  for (const Peer& peer : peers_)
    samples.push_back(peer.virtual_workers.size() * samples_per_virtual_worker_);
  return std::unique_ptr<PreparedBatch>(
      new PreparedBatch{.ids = {comm_, options_.tables, owner_, samples},
                        .sorted = std::vector<std::vector<Lookup>>(tables_.size())});
}

void ShardedEmbeddings::LookUp(const PreparedBatch& batch) {
  const size_t blocks = static_cast<size_t>(options_.virtual_workers);
  pool_.ParallelTasks(tables_.size() * blocks, [&](int, size_t task) {
    Pool(batch.ids.ids()[task / blocks], task / blocks, static_cast<int>(task % blocks));
  });
  PostToPeers(comm_, "output_dist", pooled_send_, &pooled_recv_, &pooled_exchange_);
}

void ShardedEmbeddings::ReceivePooled() { WaitForPeers(&pooled_exchange_); }

void ShardedEmbeddings::Pool(const GlobalIds& bags, size_t own_table, int virtual_worker) {
  const EmbeddingTable& table = tables_[own_table];
  const int64_t n = samples_per_virtual_worker_, first = virtual_worker * n;
  const size_t peer = static_cast<size_t>(assigned_rank_[static_cast<size_t>(virtual_worker)]);
  const bool own = static_cast<int>(peer) == comm_.rank();
  std::byte* block = (own ? pooled_recv_ : pooled_send_)[peer].data() +
                     BlockIndex(own_table, peers_[peer], virtual_worker) * forward_block_bytes_;

  thread_local std::vector<float> scratch;
  float* pooled = reinterpret_cast<float*>(block);
  if (options_.forward != FloatType::kFloat32) {
    scratch.resize(static_cast<size_t>(n * dim_));
    pooled = scratch.data();
  }
  if (bags.offsets.empty()) {
    GatherRows(table.weights,
               std::span(bags.values).subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
               pooled);
  } else {
    PoolRows(
        table.weights, bags.values.data(),
        std::span(bags.offsets).subspan(static_cast<size_t>(first), static_cast<size_t>(n) + 1),
        table.spec.pooling == Pooling::kMean, pooled);
  }
  if (options_.forward != FloatType::kFloat32)
    Encode(options_.forward, {pooled, static_cast<size_t>(n * dim_)}, block);
}

void ShardedEmbeddings::ReadPooled(int virtual_worker, int64_t first_column,
                                   BlockedMatrix* out) const {
  const Peer& me = peers_[static_cast<size_t>(comm_.rank())];
  const size_t row_bytes = EncodedBytes(options_.forward, static_cast<size_t>(dim_));
  thread_local std::vector<float> decoded;
  decoded.resize(static_cast<size_t>(dim_));
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    const std::byte* row =
        pooled_recv_[static_cast<size_t>(owner_[t])].data() +
        BlockIndex(index_at_owner_[t], me, virtual_worker) * forward_block_bytes_;
    const int64_t column = first_column + static_cast<int64_t>(t) * dim_;
    for (int64_t i = 0; i < samples_per_virtual_worker_; ++i, row += row_bytes) {
      const float* values = reinterpret_cast<const float*>(row);
      if (options_.forward != FloatType::kFloat32) {
        Decode(options_.forward, row, decoded);
        values = decoded.data();
      }
      out->SetRow(i, column, values, dim_);
    }
  }
}

void ShardedEmbeddings::WritePooledGradient(int virtual_worker, int64_t first_column,
                                            const BlockedMatrix& gradient) {
  const Peer& me = peers_[static_cast<size_t>(comm_.rank())];
  const size_t row_bytes = EncodedBytes(options_.backward, static_cast<size_t>(dim_));
  WireRange range;
  thread_local std::vector<float> values;
  values.resize(static_cast<size_t>(dim_));
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    std::byte* row = gradient_send_[static_cast<size_t>(owner_[t])].data() +
                     BlockIndex(index_at_owner_[t], me, virtual_worker) * backward_block_bytes_;
    const int64_t column = first_column + static_cast<int64_t>(t) * dim_;
    for (int64_t i = 0; i < samples_per_virtual_worker_; ++i, row += row_bytes) {
      if (options_.backward == FloatType::kFloat32 && options_.backward_scale == 1) {
        gradient.GetRow(i, column, reinterpret_cast<float*>(row), dim_);
        continue;
      }
      gradient.GetRow(i, column, values.data(), dim_);
      if (options_.backward_scale != 1) ScaleValues(options_.backward_scale, dim_, values.data());
      if (options_.backward == FloatType::kFloat16) range.Add(Float16Range(values));
      Encode(options_.backward, values, row);
    }
  }
  gradient_range_[static_cast<size_t>(virtual_worker - me.virtual_workers.begin)].Add(range);
}

WireRange ShardedEmbeddings::TakeGradientRange() {
  WireRange sum;
  for (WireRange& range : gradient_range_) {
    sum.Add(range);
    range = {};
  }
  return sum;
}

void ShardedEmbeddings::SendGradients() {
  PostToPeers(comm_, "gradients to owners", gradient_send_, &gradient_recv_, &gradient_exchange_);
}

void ShardedEmbeddings::SortLookups(size_t own_table, int thread, PreparedBatch* batch) {
  const TraceSpan span("sort lookups");
  const GlobalIds& ids = batch->ids.ids()[own_table];
  std::vector<Lookup>& sorted = batch->sorted[own_table];
  sorted.clear();
  for (int64_t sample = 0; sample < options_.batch; ++sample)
    for (int32_t id : ids.Bag(sample))
      sorted.push_back(MakeLookup(static_cast<uint32_t>(id), static_cast<uint32_t>(sample)));
  SortByRow(&sorted, &scratch_[static_cast<size_t>(thread)],
            tables_[own_table].spec.num_embeddings);
}

void ShardedEmbeddings::ReceiveGradients(const PreparedBatch& batch) {
  WaitForPeers(&gradient_exchange_);
  const size_t blocks = static_cast<size_t>(options_.virtual_workers);
  pool_.ParallelTasks(tables_.size() * blocks, [&](int, size_t task) {
    GatherGradients(batch.ids.ids()[task / blocks], task / blocks, static_cast<int>(task % blocks));
  });
}

void ShardedEmbeddings::GatherGradients(const GlobalIds& ids, size_t own_table,
                                        int virtual_worker) {
  const size_t peer = static_cast<size_t>(assigned_rank_[static_cast<size_t>(virtual_worker)]);
  const bool own = static_cast<int>(peer) == comm_.rank();
  const int64_t n = samples_per_virtual_worker_, first = virtual_worker * n;
  const std::byte* block =
      (own ? gradient_send_ : gradient_recv_)[peer].data() +
      BlockIndex(own_table, peers_[peer], virtual_worker) * backward_block_bytes_;
  float* gradient = gradients_[own_table].data() + first * dim_;
  Decode(options_.backward, block, {gradient, static_cast<size_t>(n * dim_)});
  if (options_.backward_scale != 1) ScaleValues(1 / options_.backward_scale, n * dim_, gradient);
  if (tables_[own_table].spec.pooling != Pooling::kMean) return;
  for (int64_t i = 0; i < n; ++i) {
    const size_t length = ids.Bag(first + i).size();
    if (length > 1) ScaleValues(1.0f / static_cast<float>(length), dim_, gradient + i * dim_);
  }
}

void ShardedEmbeddings::FindRuns(const PreparedBatch& batch) {
  constexpr size_t kRun = 1024;
  runs_.clear();
  for (size_t table = 0; table < tables_.size(); ++table) {
    const std::span<const Lookup> lookups = batch.sorted[table];
    for (size_t begin = 0, end; begin < lookups.size(); begin = end) {
      // Extends the run to the end of the row in which the usual length would end.
      end = std::min(begin + kRun, lookups.size());
      const Lookup last_of_row = MakeLookup(RowOf(lookups[end - 1]), ~uint32_t{0});
      end = static_cast<size_t>(std::upper_bound(lookups.begin() + static_cast<int64_t>(end),
                                                 lookups.end(), last_of_row) -
                                lookups.begin());
      runs_.push_back({table, lookups.subspan(begin, end - begin)});
    }
  }
}

double ShardedEmbeddings::SquaredGradientNorm(const PreparedBatch& batch) {
  FindRuns(batch);
  of_runs_.resize(runs_.size());
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    of_runs_[i] =
        renzan::SquaredGradientNorm(runs_[i].lookups, gradients_[runs_[i].table].data(), dim_);
  });
  const std::span<double> terms = of_runs_;
  for (size_t table = 0, begin = 0, end = 0; table < tables_.size(); ++table, begin = end) {
    while (end < runs_.size() && runs_[end].table == table) ++end;
    of_own_tables_[table] = TreeSum(terms.subspan(begin, end - begin));
  }

  // Every worker gets the sums of all tables and adds them in table order.
  comm_.AllGatherV(std::as_bytes(std::span(of_own_tables_)), of_peers_parts_);
  for (size_t t = 0; t < options_.tables.size(); ++t)
    of_tables_[t] = of_peers_[static_cast<size_t>(owner_[t])][index_at_owner_[t]];
  return TreeSum(of_tables_);
}

bool ShardedEmbeddings::Update(const PreparedBatch& batch, const SparseStep& step) {
  FindRuns(batch);
  finite_.assign(runs_.size(), 1);
  pool_.ParallelTasks(runs_.size(), [&](int, size_t i) {
    const Run& run = runs_[i];
    finite_[i] = ApplySparse(options_.optimizer, step, run.lookups, gradients_[run.table].data(),
                             &tables_[run.table]);
  });
  return std::find(finite_.begin(), finite_.end(), 0) == finite_.end();
}

}  // namespace renzan
