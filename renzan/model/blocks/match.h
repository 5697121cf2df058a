#pragma once

// How well a query, such as a user, and an item fit: the product of their vectors, <q, v> /
// temperature, as the last block of two towers. Gives a logit. Such a model can rank all items for
// a query (infer/rank_items.h). Takes the query's vector, then the item's, of one width. No
// parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Match {
  double temperature = 1;

  static constexpr const char* kType = "match";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
