#include "renzan/embedding/gradient_dist.h"

#include <algorithm>
#include <optional>

#include "renzan/embedding/kernels.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/plan/replicated_gradients.h"

namespace renzan {
namespace {

constexpr float kMaxFloat16 = 65504.0f;

// By shard: whether its gradients are sent, instead of reduced by ReducedSums.
std::vector<bool> SentToAll(const ShardMap& map, RowCodec wire) {
  std::vector<bool> sent;
  for (size_t shard = 0; shard < map.shards().size(); ++shard)
    sent.push_back(!ReducesGradients(map.rows_of(shard).size(), map.columns_of(shard), wire,
                                     map.batch() * map.table_of(shard).bags()));
  return sent;
}

}  // namespace

GradientDist::GradientDist(Communicator& comm, ThreadPool& pool, const ShardMap& map,
                           const Options& options)
    : pool_(pool),
      map_(map),
      wire_(options.wire),
      scale_(options.scale),
      in_place_(wire_ == RowCodec::kFloat32 && scale_ == 1 && map.world_size() == 1),
      messages_(comm, map, {.wire = options.wire, .to_every_holder = SentToAll(map, options.wire)}),
      error_feedback_(map, options.error_feedback_rows),
      reduced_sums_(comm, pool, map, options.wire) {
  holders_.resize(map.shards().size());
  for (int r = 0; r < map.world_size(); ++r)
    for (size_t k = 0; k < map.held_by(r).size(); ++k)
      holders_[map.held_by(r)[k]].push_back({r, k});
  const size_t own = static_cast<size_t>(map.own().size());
  range_.resize(own);
  errors_.assign(own, std::vector<WireError>(map.tables().size()));
  gradients_.resize(map.held().size());
}

void GradientDist::Begin(const InputDist& ids, bool measure) {
  measures_ = measure && wire_ != RowCodec::kFloat32;
  messages_.LayOut(ids);
}

void GradientDist::Write(const InputDist& ids, std::span<const IdsView> bags, int virtual_worker,
                         std::span<const BagPlace> places,
                         std::span<const BlockedMatrix> gradients) {
  const size_t own = static_cast<size_t>(virtual_worker - map_.own().begin);
  thread_local std::vector<ErrorFeedback::Claim> residuals;
  WireRange range;
  for (size_t t = 0; t < map_.tables().size(); ++t) {
    const TableSpec& table = map_.tables()[t];
    residuals.clear();
    if (error_feedback_.enabled())
      error_feedback_.ClaimSlots(bags[t], t, virtual_worker, &residuals);
    if (measures_) errors_[own][t] = {};
    for (int c = 0; c < table.column_blocks; ++c) {
      const int64_t column = c * table.block_columns();
      std::optional<WireErrorMeter> meter;
      if (measures_) meter.emplace(static_cast<size_t>(table.block_columns()));
      WriteColumns(ids, t, c, virtual_worker, OfRange(places, map_.bags_of(t)), gradients,
                   {*this, column, residuals, meter ? &*meter : nullptr, &range});
      if (meter) errors_[own][t].Add(meter->Result());
    }
  }
  range_[own].Add(range);
}

void GradientDist::Encoder::Encode(int64_t bag, std::span<float> gradient, std::byte* to) {
  const RowCodec wire = dist.wire_;
  if (meter != nullptr) meter->AddGradient(gradient);
  const size_t columns = gradient.size();
  std::span<float> residual;
  if (!residuals.empty()) {
    const ErrorFeedback::Claim& claim = residuals[static_cast<size_t>(bag)];
    residual = {claim.residual + first_column, columns};
    if (claim.holds) {
      for (size_t c = 0; c < columns; ++c) gradient[c] += residual[c];
    } else if (meter != nullptr) {
      meter->AddLost(residual);
    }
  }
  if (wire == RowCodec::kFloat16) range->Add(Float16Range(gradient));
  EncodeRows(wire, columns, gradient, to);
  if (residual.empty() && meter == nullptr) return;
  thread_local std::vector<float> received;
  received.resize(columns);
  DecodeRows(wire, columns, to, received);
  if (!residual.empty() && wire == RowCodec::kFloat16) {
    // What clamping cuts off is not kept: the residual would go on sending the largest value long
    // after gradients that large.
    for (float& value : gradient) value = std::clamp(value, -kMaxFloat16, kMaxFloat16);
  }
  for (size_t c = 0; c < columns; ++c) gradient[c] -= received[c];
  if (!residual.empty()) {
    std::copy(gradient.begin(), gradient.end(), residual.begin());
  } else {
    meter->AddLost(gradient);
  }
}

void GradientDist::WriteColumns(const InputDist& ids, size_t table, int column_block,
                                int virtual_worker, std::span<const BagPlace> places,
                                std::span<const BlockedMatrix> gradients, Encoder encoder) {
  const std::vector<size_t>& shards = map_.shards_of(table, column_block);
  const int64_t n = map_.bags_per_virtual_worker(table);
  const int64_t first_bag = (virtual_worker - map_.own().begin) * n;
  const int64_t dim = map_.tables()[table].block_columns();
  const size_t row_bytes = messages_.row_bytes(shards[0]);
  const bool mean = map_.tables()[table].divides_by_length();
  struct Target {
    std::byte *begin, *rows;  // the first and the next row; empty bags have none
    const int32_t* lengths;   // of the bags; null: one row each
    bool counts;              // true for one target per shard: its lengths count once
  };
  thread_local std::vector<Target> of_this_thread;
  std::vector<Target>& targets = of_this_thread;
  thread_local std::vector<float> values;
  values.resize(static_cast<size_t>(dim));
  targets.clear();
  for (const size_t shard : shards) {
    bool first = true;
    for (const auto [rank, held] : holders_[shard]) {
      if (!messages_.Travels(shard, rank)) continue;
      std::byte* const begin = messages_.OfSamples(rank, held, virtual_worker);
      targets.push_back({begin, begin, ids.own_bags(shard).LengthsFrom(first_bag), first});
      first = false;
    }
  }
  // One-hot lookups for a single holder, unencoded: all rows at once.
  const bool plain = targets.size() == 1 && targets[0].lengths == nullptr && scale_ == 1 &&
                     wire_ == RowCodec::kFloat32 && places.size() == 1;
  if (plain) {
    gradients[places[0].matrix].GetColumns(places[0].column + encoder.first_column,
                                           reinterpret_cast<float*>(targets[0].begin), dim);
    targets[0].rows += static_cast<size_t>(n) * row_bytes;
  }
  const int64_t bags = std::ssize(places);  // per sample
  for (int64_t i = plain ? n : 0, sample = 0, bag = 0; i < n; ++i) {
    const BagPlace& place = places[static_cast<size_t>(bag)];
    const std::byte* encoded = nullptr;
    int64_t length = 0;
    if (mean)
      for (const Target& target : targets)
        if (target.counts) length += target.lengths == nullptr ? 1 : target.lengths[i];
    for (Target& target : targets) {
      if (target.lengths != nullptr && target.lengths[i] == 0) continue;
      std::byte* const to = target.rows;
      target.rows += row_bytes;
      if (encoded != nullptr) {
        std::copy_n(encoded, row_bytes, to);
        continue;
      }
      encoded = to;
      float* g = wire_ == RowCodec::kFloat32 ? reinterpret_cast<float*>(to) : values.data();
      gradients[place.matrix].GetRow(sample, place.column + encoder.first_column, g, dim);
      if (mean && length > 1) ScaleValues(1.0f / static_cast<float>(length), dim, g);
      if (scale_ != 1) ScaleValues(scale_, dim, g);
      if (wire_ == RowCodec::kFloat32) continue;
      encoder.Encode(i, values, to);
    }
    if (++bag == bags) {
      bag = 0;
      ++sample;
    }
  }
  if (!in_place_) return;
  for (const Target& target : targets)
    ClearNegativeZeros((target.rows - target.begin) / static_cast<int64_t>(sizeof(float)),
                       reinterpret_cast<float*>(target.begin));
}

void GradientDist::Send(const InputDist& ids) {
  messages_.Send("gradients to owners", false);
  for (size_t held = 0; held < gradients_.size(); ++held) {
    if (StaysInPlace(held)) continue;
    const size_t needed =
        ids.of_held(held).num_bags() * static_cast<size_t>(map_.columns_of(map_.held()[held]));
    // With room for slightly larger batches.
    if (gradients_[held].size() < needed) gradients_[held] = AlignedBuffer(needed + needed / 8);
  }
  const size_t own = static_cast<size_t>(map_.own().size());
  pool_.ParallelTasks(gradients_.size() * own, [&](int, size_t task) {
    const size_t held = task / own;
    const int v = map_.own().begin + static_cast<int>(task % own);
    if (!reduced_sums_.Has(held)) return;
    Decode(ids, held, v);
    reduced_sums_.Add(ids.of_held(held), held, v, gradients_[held].data());
  });
  reduced_sums_.Start();
}

void GradientDist::Receive(const InputDist& ids) {
  messages_.Wait();
  const size_t blocks = static_cast<size_t>(map_.virtual_workers());
  pool_.ParallelTasks(gradients_.size() * blocks, [&](int, size_t task) {
    const size_t held = task / blocks;
    if (!reduced_sums_.Has(held) && !in_place_) Decode(ids, held, static_cast<int>(task % blocks));
  });
  reduced_sums_.Finish();
}

void GradientDist::Decode(const InputDist& ids, size_t held, int virtual_worker) {
  const size_t v = static_cast<size_t>(virtual_worker);
  const std::vector<int32_t>& first = ids.of_held(held).first_bag;
  const int64_t dim = map_.columns_of(map_.held()[held]);
  const int64_t values = (first[v + 1] - first[v]) * dim;
  float* gradient = gradients_[held].data() + first[v] * dim;
  DecodeRows(wire_, static_cast<size_t>(dim), messages_.OfHeld(held, virtual_worker),
             {gradient, static_cast<size_t>(values)});
  if (scale_ != 1) ScaleValues(1 / scale_, values, gradient);
  ClearNegativeZeros(values, gradient);
}

WireRange GradientDist::TakeRange() {
  WireRange sum;
  for (WireRange& range : range_) {
    sum.Add(range);
    range = {};
  }
  return sum;
}

}  // namespace renzan
