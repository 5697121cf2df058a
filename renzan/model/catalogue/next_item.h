#pragma once

// What models that predict the next item of a sequence have in common: where the item and its
// negatives are, the query that is compared with them, and the logit.

#include <string>

#include "renzan/model/graph.h"
#include "renzan/model/model.h"

namespace renzan {

// The first sequence that shares its table with a feature of one value, the item, and the item's
// negatives.
struct NextItem {
  const SequenceInput& history;
  const SequenceInput& negatives;
};

// Throws kConfig if there are none.
NextItem NextItemOf(const ModelOptions& options);

// Appends the logit of the item. The query is `newest`, what the model makes of the newest position
// of the sequence; where the dataset has more features, an MLP of the widths of top_mlp computes it
// from all of them and `newest`.
void AddNextItemLogit(const ModelOptions& options, const NextItem& next, const std::string& newest,
                      Graph* graph);

}  // namespace renzan
