#pragma once

// Opens the datasets of a configuration and checks that all workers see the same data.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/data_config.h"
#include "renzan/config/features_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/evaluate.h"

namespace renzan {

// The rows of a dataset to train on, or to evaluate with.
struct Split {
  const Dataset* dataset = nullptr;
  RowRange rows;
};

// Owns the datasets its splits point to.
struct OpenedSplits {
  std::unique_ptr<Dataset> train_dataset, eval_dataset;  // eval_dataset is null if it is the same
  Split train;
  std::optional<Split> eval;
};

// The column by which evaluations are weighted, or "".
std::string WeightOfEvaluations(const OpenedSplits& splits);

// Opens this worker's copy of a dataset. Throws kConfig unless all workers have the same content.
// Only rank 0 warns of an old format.
std::unique_ptr<Dataset> OpenDataset(const std::string& path, DatasetOptions options,
                                     Communicator& comm);

// Throws kNoInput, kData, or kConfig (rows outside the dataset, eval with another schema).
OpenedSplits OpenSplits(const DataConfig& config, const FeaturesConfig& features,
                        Communicator& comm);

// The given range of rows, checked against the dataset. `key` and `code` are for errors.
RowRange ResolveRows(const std::vector<int64_t>& rows, const Dataset& dataset, const char* key,
                     ErrorCode code = ErrorCode::kConfig);

// The columns of a dataset, as a configuration records them.
FeaturesConfig FeaturesOf(const DatasetSchema& schema);

// What the ids of a dataset must be.
enum class ExpectedIds {
  kSame,       // those expected for the same values
  kContinued,  // or of vocabularies that continue the expected ones, to be read through KnownIds
  kAny,
};

// What a dataset must have, and who says so: "the model", or a dataset's directory.
struct ExpectedFeatures {
  FeaturesConfig features;
  std::string recorded_by;
  ExpectedIds ids = ExpectedIds::kSame;
  std::string vocabularies_from = "the training data";  // where an import can take them from
  bool only_common = false;  // compares only the features that both have, in any order
};

// Throws kConfig, naming the first column that is not the expected one; kIo or kData if
// vocabularies that it has to compare cannot be read. Rank 0 warns of preprocessing that cannot be
// compared because one of the two sides does not record it. Exchanges nothing.
void CheckFeatures(const ExpectedFeatures& expected, const Dataset& dataset, Communicator& comm);

// Throws kConfig unless its rows have labels, which training and evaluation need.
void CheckHasLabels(const Dataset& dataset);

// For people: that training data was imported as a test set, so that many of its first rows'
// lookups teach nothing about their values, and what to do; "" if not so.
std::string UnknownValuesAdvice(const Split& train);

// Mean lookups per sample of each categorical feature, estimated from the first rows.
std::vector<double> EstimatePoolingFactors(const Split& split);

}  // namespace renzan
