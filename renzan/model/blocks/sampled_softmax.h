#pragma once

// A softmax over an item and some negatives of it, as a logit. Of the scores
//   s = <query, item> / temperature,  s_j = <query, negative j> / temperature
// it gives, in training,
//   z = s − log Σ_j exp(s_j),
// the log odds of the item against all negatives: 1 / (1 + exp(−z)) is the item's probability in
// the softmax, so the binary cross entropy of z with label 1 is the softmax's cross entropy,
// −log(exp(s) / (exp(s) + Σ_j exp(s_j))). In evaluation and predictions, which have no negatives,
// it gives the score s. Negatives that are drawn uniformly need no correction for how likely each
// is (Jean et al., "On Using Very Large Target Vocabulary", ACL 2015): it would be the same for
// all. Takes the query, the item and negatives, vectors of one dimension. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct SampledSoftmax {
  double temperature = 1;

  static constexpr const char* kType = "sampled_softmax";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
