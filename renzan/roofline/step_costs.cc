#include "renzan/roofline/step_costs.h"

#include <unordered_set>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/dense/dense_gradients.h"
#include "renzan/embedding/idle_row_steps.h"
#include "renzan/plan/idle_rows_cost.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

// Counts for one step.
struct Lookups {
  double all = 0, distinct = 0;                // rows
  double all_values = 0, distinct_values = 0;  // of these rows
  double weights = 0;                          // of lookups
  std::vector<double> distinct_of;             // by table
};

Lookups CountLookups(std::span<const Batch> slices, const RunSpec& spec) {
  Lookups lookups;
  lookups.distinct_of.resize(spec.tables.size());
  for (const Batch& slice : slices) {
    size_t next = 0;
    for (size_t t = 0; t < spec.tables.size(); ++t) {
      const TableSpec& table = spec.tables[t];
      double all = 0;
      std::unordered_set<int64_t> rows;
      for (size_t f = 0; f < table.features.size(); ++f) {
        const size_t of = spec.features[next++], data = slice.categorical.size();
        const std::vector<int64_t>& ids =
            (of < data ? slice.categorical[of] : slice.negatives[of - data]).values;
        all += static_cast<double>(ids.size());
        rows.insert(ids.begin(), ids.end());
      }
      const double dim = static_cast<double>(table.embedding_dim);
      const double distinct = static_cast<double>(rows.size());
      lookups.all += all;
      if (table.weighted) lookups.weights += all;
      lookups.distinct += distinct;
      lookups.distinct_of[t] += distinct / static_cast<double>(slices.size());
      lookups.all_values += dim * all;
      lookups.distinct_values += dim * distinct;
    }
  }
  for (double* sum : {&lookups.all, &lookups.distinct, &lookups.all_values,
                      &lookups.distinct_values, &lookups.weights})
    *sum /= static_cast<double>(slices.size());
  return lookups;
}

// What this worker's shards cost whose rows move though no sample looks them up. Other workers'
// slices are taken to be like its own, without common rows.
PhaseCost CatchUpCost(ModelState& state, const Lookups& lookups, const MovedRows& moved) {
  const RunSpec& spec = state.spec();
  IdleRowSteps steps = IdleRowStepsOf(spec.sparse_optimizer);
  steps.interval = moved.interval;
  const double slices = static_cast<double>(spec.numerics.batch) /
                        static_cast<double>(state.slice_end() - state.slice_begin());
  const std::vector<EmbeddingShard>& shards = state.embeddings().shards();
  CHECK(shards.size() == moved.rows.size());
  PhaseCost cost{.phase = kCatchUpSpan};
  for (size_t i = 0; i < shards.size(); ++i) {
    const EmbeddingShard& shard = shards[i];
    const double share =
        static_cast<double>(shard.shard.row_blocks.size()) / shard.table.row_blocks;
    const double floats = static_cast<double>(
        shard.dim() + StateFloatsPerRow(spec.sparse_optimizer.type, shard.dim()));
    const IdleRowsCost idle =
        CostOfIdleRows(steps, {.rows = moved.rows[i],
                               .looked_up = slices * share * lookups.distinct_of[shard.shard.table],
                               .columns = static_cast<double>(shard.dim()),
                               .bytes = sizeof(float) * floats});
    cost.flops += idle.flops;
    cost.stream_bytes += idle.stream_bytes;
    cost.row_bytes += idle.row_bytes;
  }
  return cost;
}

}  // namespace

std::vector<PhaseCost> CostsOfStep(ModelState& state, std::span<const Batch> slices,
                                   const MovedRows& moved) {
  const RunSpec& spec = state.spec();
  const Numerics& numerics = spec.numerics;
  const Model& model = state.model();
  constexpr double kFloat = sizeof(float), kId = sizeof(int32_t), kLookup = 8;
  const double samples = static_cast<double>(state.slice_end() - state.slice_begin());
  const double leaves =
      samples / static_cast<double>(numerics.batch) * static_cast<double>(numerics.virtual_workers);
  const double parameters = static_cast<double>(model.layout().size());
  const double states = static_cast<double>(state.dense_optimizer().states().size());
  double pooled = 0;
  for (const TableSpec& table : spec.tables)
    pooled += samples * static_cast<double>(table.bags() * table.embedding_dim);
  const double value = static_cast<double>(EncodedBytes(numerics.rows, 1));
  const Lookups lookups = CountLookups(slices, spec);
  double updated = value * lookups.distinct_values;
  const SparseOptimizerInfo& optimizer = InfoOf(spec.sparse_optimizer.type);
  updated += kFloat * (optimizer.state_per_value() * lookups.distinct_values +
                       optimizer.state_per_row() * lookups.distinct);
  // Rows that a worker looks up for itself are pooled, and their gradients left, in "forward and
  // backward".
  const double own = samples / static_cast<double>(numerics.batch);
  // Deferred gradients leave operands there; the products come later and are a third of all.
  const bool defers = DenseGradients::Defers(model.layout(), DenseGradientOptionsOf(numerics));
  const double operands =
      defers ? leaves * static_cast<double>(DeferredGradients::BytesOf(
                            model.layout(), DenseGradientOptionsOf(numerics).samples))
             : 0;
  const double flops = samples * model.FlopsPerSample(numerics.samples());
  const double deferred_flops = defers ? 2 * samples * parameters : 0;
  const double packed = model.options().precision == Precision::kBFloat16 ? 2 : kFloat;
  // Rows that catch up when they are looked up are found by sorting the lookups first.
  const bool idle_rows_move = IdleRowsMove(spec.sparse_optimizer);
  const double sorting = 4 * kLookup * lookups.all;
  std::vector<PhaseCost> costs = {
      {.phase = "input_dist", .stream_bytes = 2 * (kId * lookups.all + kFloat * lookups.weights)},
      {.phase = "lookup",
       .stream_bytes = (1 - own) * kFloat * pooled + (idle_rows_move ? sorting : 0),
       .row_bytes = (1 - own) * value * lookups.all_values},
      {.phase = "pack parameters", .stream_bytes = (kFloat + 2 * packed) * parameters},
      {.phase = "forward and backward",
       .flops = flops - deferred_flops,
       .stream_bytes = (idle_rows_move ? 0 : sorting) + operands + kFloat * pooled,
       .row_bytes = own * value * lookups.all_values},
      {.phase = "gradients to owners", .stream_bytes = (own < 1 ? 2 : 0) * kFloat * pooled},
      {.phase = "reduce dense gradients",
       .flops = deferred_flops,
       .stream_bytes =
           defers ? operands + kFloat * parameters : kFloat * parameters * (leaves + 1)},
      {.phase = "sparse update",
       .stream_bytes = kFloat * lookups.all_values,
       .row_bytes = 2 * updated},
      {.phase = "dense update", .stream_bytes = kFloat * parameters * (3 + 2 * states)},
      {.phase = "check dense part", .stream_bytes = kFloat * parameters * (1 + states)}};
  if (idle_rows_move) costs.push_back(CatchUpCost(state, lookups, moved));
  if (spec.learning_rates.max_gradient_norm > 0)
    costs.push_back({.phase = "clip gradients",
                     .stream_bytes = 3 * kFloat * parameters + kFloat * lookups.all_values});
  return costs;
}

double LeastSeconds(const PhaseCost& cost, const MachineLimits& limits) {
  return cost.flops / limits.matrix_flops + cost.stream_bytes / limits.stream_bytes +
         cost.row_bytes / limits.row_bytes;
}

}  // namespace renzan
