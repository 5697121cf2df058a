#include <algorithm>

#include "renzan/cuda/load.h"
#include "renzan/model/dot_interaction.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"

namespace renzan {

DeviceBytes EstimateDeviceBytes(const DeviceModelOptions& options) {
  // CUDA's own memory, scratch memory for products, and padding.
  constexpr int64_t kProgram = int64_t{512} << 20;
  constexpr int64_t kFloat = sizeof(float);
  constexpr double kPadding = 32;  // values per sample
  DeviceBytes bytes;
  int64_t returning = 0;  // the widest table's rows, up to three times while a piece grows
  for (const DeviceTableOptions& table : options.tables) {
    const int64_t row = (table.dim + table.state_width) * kFloat;
    bytes.tables += table.rows * row;
    returning = std::max(returning, 3 * std::min(table.rows, kReturningRows) * row);
  }
  bytes.tables += returning;
  const std::unique_ptr<Model> model = MakeModel(options.model);
  const int64_t value = options.model.precision == Precision::kBFloat16 ? 2 : 4;
  const int64_t parameters = model->layout().size();
  const int64_t samples = options.own_samples();
  const int64_t features = model->features_columns();
  // Parameters, weights for products, and virtual workers' gradients; with tables on the device
  // also the sum of gradients and the optimizer's states.
  bytes.rest = parameters * (kFloat * (1 + options.own_virtual_workers) + value);
  bytes.tables += parameters * kFloat * (1 + std::ssize(InfoOf(options.dense.type).states));
  // Activations, and gradients of the same size; features and the interaction's output, with
  // gradients.
  const double dim = static_cast<double>(options.model.embedding_dim);
  double values = 2 * model->ActivationsPerSample() + 2 * static_cast<double>(features);
  values += HasDotInteraction(options.model)
                ? 2 * static_cast<double>(DotInteractionWidth(1 + std::ssize(options.model.tables),
                                                              options.model.embedding_dim))
                : static_cast<double>(features) * (options.model.sizes.cross_layers + 1);
  values += dim + static_cast<double>(options.model.num_dense) + kPadding;
  bytes.rest += static_cast<int64_t>(values) * samples * value;
  bytes.rest += 2 * samples * (options.model.num_dense + 1) * kFloat;
  // Two batches, and memory for sorting lookups: rows and bags before and after, CUB's own, and
  // lists. A batch may have more lookups than the mean.
  double lookups = 0;
  for (const DeviceTableOptions& table : options.tables)
    lookups += 1.5 * std::max(1.0, table.pooling_factor);
  lookups *= static_cast<double>(samples);
  constexpr double kBytesOfLookup = (2 + 4 + 2 + 1) * kFloat;
  bytes.tables += static_cast<int64_t>(lookups * kBytesOfLookup);
  // At most this much for the sums of frequent rows' gradients.
  const double leaf_floats = lookups / kManyLookups * static_cast<double>(features) *
                             static_cast<double>(options.own_virtual_workers);
  bytes.tables +=
      kFloat * static_cast<int64_t>(std::min(leaf_floats, static_cast<double>(kMaxLeafFloats)));
  // Two batches of pooled rows, and their gradients.
  const int64_t pooled = features - options.model.embedding_dim;
  bytes.pooled = samples * pooled * (2 * kFloat + value);
  bytes.rest += kProgram;
  return bytes;
}

}  // namespace renzan
