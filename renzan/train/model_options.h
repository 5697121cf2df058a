#pragma once

// What a configuration and a dataset mean for the parts of a model. Throws kConfig for unknown
// words, because a configuration may not have come from a validated file.

#include <span>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/plan/table_spec.h"
#include "renzan/train/config.h"

namespace renzan {

ModelOptions ModelOptionsOf(const TrainConfig& config, const DatasetSchema& schema);
DenseOptimizerOptions DenseOptionsOf(const DenseOptimizerConfig& config);
SparseOptimizerOptions SparseOptionsOf(const SparseOptimizerConfig& config);

// One table for each categorical feature. pooling_factors: mean lookups per sample, an estimate.
std::vector<TableSpec> TablesOf(const TrainConfig& config, const DatasetSchema& schema,
                                std::span<const double> pooling_factors);

}  // namespace renzan
