#pragma once

// Statistics of a whole dataset by feature. One pass; memory grows with the table sizes, not with
// the number of rows.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/input.h"

namespace renzan {

struct TopValue {
  std::string value;  // the text if a vocabulary has it, otherwise the id or the number
  int64_t count = 0;
  // The mean label of the rows that hold it and have the label: NaN if none has; 0 without labels.
  double label_mean = 0;
};

struct FeatureSummary {
  std::string name;
  std::string kind;        // "dense", "vector", "one-hot", "multi-hot"
  int64_t dimension = 0;   // of a vector
  std::string vocabulary;  // as in dataset.yaml
  int64_t num_embeddings = 0;
  int64_t values = 0;  // rows, or for multi-hot the values in all bags
  // Id 0, or empty bags; zeros for dense and vectors of zeros, since missing is stored as 0; -1 for
  // dense whose transform has a `fill`: nothing says any more which rows those were.
  int64_t missing = 0;
  int64_t distinct = 0;  // without missing, and without rare or unseen values of a vocabulary
  bool distinct_capped = false;       // counting stopped at the limit
  double min = 0, mean = 0, max = 0;  // of dense, and of all numbers of a vector
  std::vector<TopValue> top;          // most frequent first, without missing
};

struct DatasetSummary {
  int64_t rows = 0;
  double label_mean = 0;  // of the first label, over the rows that have it; NaN if none has
  std::vector<FeatureSummary> features;
};

// Throws what Dataset::Read throws, and kTempFail when stopped.
DatasetSummary InspectDataset(const Dataset& dataset, size_t num_top,
                              const StopFunction& stop = nullptr);

}  // namespace renzan
