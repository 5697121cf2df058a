#pragma once

// The item of each sample among the items of its virtual worker's samples: a softmax without
// sampling, whose negatives are the other samples' items (Yi et al., "Sampling-Bias-Corrected
// Neural Modeling for Large Corpus Item Recommendations", RecSys 2019). Takes a query and an item
// of one width. Gives a logit:
//
// In training z_i = s_ii − log Σ_j exp(s_ij), with s_ij = <query_i, item_j> / temperature, over the
// other samples j. These are the log odds of the item, so the binary cross entropy of label 1 is
// that of the softmax, log(1 + exp(−z_i)) = −log(exp(s_ii) / Σ_j exp(s_ij)); of label 0, it makes
// the item less likely. A sample without negatives gives a constant.
//
// In evaluation s_ii, which no other sample changes.
//
// With `item`, a feature with one value: samples j with the same id as i are no negatives of it.
// With `popularity`, s_ij − log p_j instead of s_ij in training, where p_j is the share of the
// training data's rows with the id of sample j: what occurs often is often a negative by chance.
// No parameters.

#include <string>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct InBatchSoftmax {
  double temperature = 1;
  std::string item;
  bool popularity = false;

  static constexpr const char* kType = "in_batch_softmax";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
