#pragma once

// Models with first-order weights (a linear part) keep each value's weight beside its embedding, as
// the last column of its row: so both are looked up and sent together. These blocks take them
// apart. Like FM's and the wide part's weights: Rendle, "Factorization Machines", ICDM 2010; Cheng
// et al., "Wide & Deep Learning for Recommender Systems", 2016.

#include "renzan/model/blocks/block.h"

namespace renzan {

// The sum of the last columns of all vectors, and a bias: a logit. Parameter: "<name>.bias" [1, 1].
struct FirstOrder {
  static constexpr const char* kType = "first_order";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

// All vectors without their last columns; of a sequence a sequence. No parameters.
struct Factors {
  static constexpr const char* kType = "factors";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
