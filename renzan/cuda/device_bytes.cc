#include <algorithm>

#include "renzan/cuda/load.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"

namespace renzan {

DeviceBytes EstimateDeviceBytes(const DeviceModelOptions& options) {
  // CUDA's own memory, the products' scratch memory and what pads.
  constexpr int64_t kProgram = int64_t{512} << 20;
  constexpr int64_t kFloat = sizeof(float);
  DeviceBytes bytes;
  for (const DeviceTableOptions& table : options.tables)
    bytes.tables += table.rows * (table.dim + table.state_width) * kFloat;
  const std::unique_ptr<Model> model = MakeModel(options.model);
  const int64_t value = options.model.precision == Precision::kBFloat16 ? 2 : 4;
  const int64_t parameters = model->layout().size();
  const int64_t samples = options.own_samples();
  const int64_t features = model->features_per_sample();
  DenseOptimizer dense(options.dense, 0);
  // The parameters, their sum of gradients, states, weights for products, and virtual workers'
  // gradients.
  bytes.rest = parameters *
               (kFloat * (2 + std::ssize(dense.states()) + options.own_virtual_workers) + value);
  // Activations and gradients that are as large; the features and theirs; of the cross network, its
  // projections' outputs and the gradients of its input.
  double activations = 2 * ActivationsPerSample(*model) + 2 * static_cast<double>(features);
  if (options.model.type == "dlrm_dcnv2")
    activations += static_cast<double>(features) * (options.model.cross_layers + 4);
  bytes.rest += static_cast<int64_t>(activations) * samples * value;
  // Two batches, and what sorting lookups needs: keys and places before and after, and CUB's own. A
  // batch may have more lookups than the mean.
  double lookups = 0;
  for (const DeviceTableOptions& table : options.tables)
    lookups += 1.5 * std::max(1.0, table.pooling_factor);
  constexpr double kBytesOfLookup = (2 + 4 + 2) * kFloat;
  bytes.rest += static_cast<int64_t>(lookups * kBytesOfLookup * static_cast<double>(samples));
  bytes.rest += 2 * samples * (options.model.num_dense + 1) * kFloat;
  bytes.rest += kProgram;
  return bytes;
}

}  // namespace renzan
