#pragma once

// Section `features`: the columns of the data.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"

namespace renzan {

// The columns that the model expects, recorded with every run and model. If this is set, datasets
// must match it.
struct FeaturesConfig {
  std::vector<std::string> dense, categorical;
  std::vector<int64_t> num_embeddings;  // of `categorical`
  std::vector<std::string> multi_hot;   // the names in `categorical` that are
  // Of `categorical`; empty if each has a table of its own, or none is a sequence.
  std::vector<std::string> tables;
  // Of `categorical`: the table of each.
  const std::vector<std::string>& table_names() const {
    return tables.empty() ? categorical : tables;
  }
  std::vector<int64_t> max_lengths;  // 0: no sequence
  std::vector<std::string>
      weights;  // the columns of their values' weights, "": they have none; or empty
  // The preprocessing, as in DatasetSchema. Empty in models and checkpoints written before it was
  // recorded; dense_transforms is also empty for datasets from that time.
  std::vector<std::string> dense_transforms;  // of `dense`
  std::vector<std::string> vocabularies;      // of `categorical`
  std::string label;  // the first one's name; "" in models written before it was recorded
  std::string label_rule;
  std::map<std::string, std::string> further_label_rules;  // by label, the first one's excepted
  std::map<std::string, std::string> parsing;              // by column
  double negatives_kept = 1;  // in the training data; other data may differ
  bool empty() const { return dense.empty() && categorical.empty(); }
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
