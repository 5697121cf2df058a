#pragma once

// Columns of the data that `predict --with` writes before the scores.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/value_names.h"

namespace renzan {

// The name of the last column of a file with columns.
inline constexpr char kScoreName[] = "score";

struct ScoreColumn {
  enum class Kind { kLabel, kDense, kCategorical } kind;
  size_t index = 0;                   // of the feature
  std::string name;                   // in the header
  std::unique_ptr<ValueNames> names;  // of a categorical feature
  bool is_bag = false;                // of a multi-hot one

  // Whether its values are single ids.
  bool holds_ids() const { return names && !is_bag && (names->are_ids() || !names->known()); }
};

// Throws kUsage unless the dataset has columns of these names (its label, dense and categorical
// features), each of which is named once.
void CheckScoreColumns(const Dataset& dataset, const std::vector<std::string>& names);

// The same columns; reads vocabularies. Values of features whose values were hashed are ids, which
// their names say.
std::vector<ScoreColumn> MakeScoreColumns(const Dataset& dataset,
                                          const std::vector<std::string>& names);

// A value of the label or of a dense feature.
float NumberOf(const ScoreColumn& column, const DatasetSchema& schema, const Batch& batch,
               size_t row);
// An id or the ids of a bag.
std::span<const int64_t> IdsOf(const ScoreColumn& column, const Batch& batch, size_t row);
// Any value as text: values by their names, missing ones as "", those of a bag separated by '|'.
std::string TextOf(const ScoreColumn& column, const DatasetSchema& schema, const Batch& batch,
                   size_t row);

}  // namespace renzan
