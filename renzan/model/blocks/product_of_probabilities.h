#pragma once

// The product of probabilities: of logits a_i, the logit of Π_i sigmoid(a_i). So the probability of
// a purchase is that of a click times that of a purchase after a click, and both learn from all
// impressions (ESMM: Ma et al., "Entire Space Multi-Task Model", SIGIR 2018). Takes logits. No
// parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct ProductOfProbabilities {
  static constexpr const char* kType = "product_of_probabilities";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
