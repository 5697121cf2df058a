#pragma once

// Opens the datasets that a configuration names, and checks that all workers see the same ones.

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
  std::unique_ptr<Dataset> train_dataset, eval_dataset;  // eval's is null when it is the same one
  Split train;
  std::optional<Split> eval;
};

// Throws kNoInput, kData, or kConfig (rows outside the dataset, eval with another schema).
OpenedSplits OpenSplits(const DataConfig& config, Communicator& comm);

// A range of rows as the configuration gives it, checked against the dataset. `key` is for messages.
RowRange ResolveRows(const std::vector<int64_t>& rows, const Dataset& dataset, const char* key);

// Throws kConfig naming the first difference unless ids and columns mean the same in both.
void CheckSameSchema(const DatasetSchema& expected, const Dataset& dataset);

// Mean lookups per sample of each categorical feature, estimated from the first rows.
std::vector<double> EstimatePoolingFactors(const Split& split);

}  // namespace renzan
