#pragma once

// Whether the parameters of two models that have the same names and shapes mean the same. A weight
// is of a column of its block's input; what that is follows from the features and from the blocks
// before it.

#include <set>
#include <span>
#include <string>

#include "renzan/model/model.h"

namespace renzan {

// A model and the names of its dense features.
struct ModelOnFeatures {
  const ModelOptions& model;
  std::span<const std::string> dense;
};

struct ColumnDifferences {
  // Of blocks of both models: parameters of one whose columns are others in the other, or whose
  // block is of another type there. An MLP's layers after the first read its own units, so they are
  // not among them, and blocks that read an MLP's output read the same if it has the same name.
  std::set<std::string> parameters;
  // Whether only one of the two has first-order weights in its rows, as their last column.
  bool rows = false;
  // Whether other blocks compute an output that both have.
  bool outputs = false;
};

// The shapes may differ, too. `layout`: of the model `here`.
ColumnDifferences CompareColumns(const ModelOnFeatures& there, const ModelOnFeatures& here,
                                 const ParameterLayout& layout);

}  // namespace renzan
