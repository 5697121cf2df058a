#include "renzan/roofline/step_costs.h"

#include <unordered_set>

#include "renzan/base/float_codec.h"

namespace renzan {
namespace {

struct Lookups {
  double all = 0, distinct = 0;  // of a step
};

Lookups CountLookups(std::span<const Batch> slices) {
  Lookups lookups;
  for (const Batch& slice : slices) {
    for (const FeatureIds& feature : slice.categorical) {
      lookups.all += static_cast<double>(feature.values.size());
      lookups.distinct += static_cast<double>(
          std::unordered_set<int32_t>(feature.values.begin(), feature.values.end()).size());
    }
  }
  lookups.all /= static_cast<double>(slices.size());
  lookups.distinct /= static_cast<double>(slices.size());
  return lookups;
}

}  // namespace

std::vector<PhaseCost> CostsOfStep(const TrainConfig& config, HybridModel& model,
                                   std::span<const Batch> slices) {
  constexpr double kFloat = sizeof(float), kId = sizeof(int32_t), kLookup = 8;
  const double samples = static_cast<double>(model.slice_end() - model.slice_begin());
  const double leaves = samples / static_cast<double>(config.training.batch_size) *
                        static_cast<double>(config.numerics.virtual_workers);
  const double parameters = static_cast<double>(model.model().layout().size());
  const double states = static_cast<double>(model.dense_optimizer().states().size());
  const double dim = static_cast<double>(config.model.embedding_dim);
  const double pooled = samples * static_cast<double>(model.model().options().num_tables) * dim;
  const double row = dim * static_cast<double>(EncodedBytes(
                               ParseFloatType(config.numerics.embedding_precision), 1));
  double updated_row = row;
  if (config.optimizer.sparse.type == "adagrad") updated_row += kFloat * dim;
  if (config.optimizer.sparse.type == "rowwise_adagrad") updated_row += kFloat;
  const Lookups lookups = CountLookups(slices);
  std::vector<PhaseCost> costs = {
      {.phase = "input_dist", .stream_bytes = 2 * kId * lookups.all},
      {.phase = "lookup", .stream_bytes = kFloat * pooled, .row_bytes = row * lookups.all},
      {.phase = "pack parameters", .stream_bytes = 4 * kFloat * parameters},
      {.phase = "forward and backward",
       .flops = samples * FlopsPerSample(model.model()),
       .stream_bytes = 4 * kLookup * lookups.all},  // sorting
      {.phase = "gradients to owners", .stream_bytes = 2 * kFloat * pooled},
      {.phase = "reduce dense gradients", .stream_bytes = kFloat * parameters * (leaves + 1)},
      {.phase = "sparse update",
       .stream_bytes = kFloat * dim * lookups.all,
       .row_bytes = 2 * updated_row * lookups.distinct},
      {.phase = "dense update", .stream_bytes = kFloat * parameters * (3 + 2 * states)},
      {.phase = "check dense part", .stream_bytes = kFloat * parameters * (1 + states)}};
  if (config.optimizer.max_gradient_norm > 0)
    costs.push_back({.phase = "clip gradients",
                     .stream_bytes = 3 * kFloat * parameters + kFloat * dim * lookups.all});
  return costs;
}

double LeastSeconds(const PhaseCost& cost, const MachineLimits& limits) {
  return cost.flops / limits.matrix_flops + cost.stream_bytes / limits.stream_bytes +
         cost.row_bytes / limits.row_bytes;
}

}  // namespace renzan
