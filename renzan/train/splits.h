#pragma once

// Opens the datasets of a configuration and checks that all workers see the same data.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/data/dataset.h"
#include "renzan/train/config.h"
#include "renzan/train/loop.h"

namespace renzan {

// Owns the datasets its splits point to.
struct OpenedSplits {
  std::unique_ptr<Dataset> train_dataset, eval_dataset;  // eval_dataset is null if it is the same
  Split train;
  std::optional<Split> eval;
};

// Throws kNoInput, kData, or kConfig (rows outside the dataset, eval with another schema).
OpenedSplits OpenSplits(const DataConfig& config, const FeaturesConfig& features,
                        Communicator& comm);

// The configured range of rows, checked against the dataset (kConfig). `key` is for messages.
RowRange ResolveRows(const std::vector<int64_t>& rows, const Dataset& dataset, const char* key);

// The columns of a dataset, as a configuration records them.
FeaturesConfig FeaturesOf(const DatasetSchema& schema);

// Throws kConfig, which names the first column that is not the expected one.
void CheckFeatures(const FeaturesConfig& expected, const Dataset& dataset);

// Mean lookups per sample of each categorical feature, estimated from the first rows.
std::vector<double> EstimatePoolingFactors(const Split& split);

}  // namespace renzan
