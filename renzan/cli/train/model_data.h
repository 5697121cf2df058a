#pragma once

// Datasets as a saved model reads them.

#include <memory>
#include <optional>
#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/known_ids.h"
#include "renzan/infer/for_each_slice.h"

namespace renzan {

struct ModelData {
  std::unique_ptr<Dataset> dataset;
  DatasetSchema schema;                 // of the dataset, with the model's ids
  std::unique_ptr<KnownIds> known_ids;  // not null if the dataset has more

  ModelRows rows(RowRange range) const { return {dataset.get(), range, known_ids.get()}; }
};

// A dataset that a model's own configuration names.
struct DataOfRun {
  std::string model;  // what the user named
  std::string flag;   // that would name other data
};

// Throws kNoInput, kData (also for data of a run that are not what it had), or kConfig if the
// dataset does not have the model's features. Every rank calls it.
ModelData OpenModelData(const std::string& path, const TrainConfig& config,
                        const std::optional<DataOfRun>& run, Communicator& comm);

// "data/clicks", "rows 800 to 1000 of data/clicks"
std::string Describe(const SplitConfig& data);

}  // namespace renzan
