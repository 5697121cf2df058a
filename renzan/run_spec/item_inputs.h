#pragma once

// What blocks want to know in training of features with one value besides the rows that they look
// up (SampleItems).

#include <cstdint>
#include <optional>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/model/model.h"
#include "renzan/run_spec/feature_lookups.h"

namespace renzan {

// How many rows of the training data have each id of a feature.
struct IdCounts {
  std::vector<int64_t> of_id;
  int64_t rows = 0;  // all
};

class ItemInputs {
 public:
  // `counts`: for each of Model::items() with popularity, in which every id that is read occurs.
  ItemInputs(const Model& model, const FeatureLookups& lookups, std::vector<IdCounts> counts);

  // Sets Workspace::items for samples [first, first + n) of the batch. Thread-safe.
  void Read(const Batch& batch, int64_t first, int64_t n, Model::Workspace* workspace) const;

 private:
  struct Item {
    size_t feature;                // of a batch
    std::optional<size_t> counts;  // with popularity
  };
  std::vector<IdCounts> counts_;
  std::vector<Item> items_;
};

}  // namespace renzan
