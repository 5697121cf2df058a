#pragma once

// Attention of one vector, such as the candidate item, to those of a sequence, such as the items of
// a history: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018.
// Gives
//   Σ_j a_j k_j,  a_j = MLP([q, k_j, q − k_j, q ⊙ k_j]),
// over the positions that are used; with `softmax`, against which the paper advises, a is
// normalized to a sum of 1. Takes the vector q and the vectors k_j, all of one dimension, gives one
// vector of it.
//
// Parameters: "<name>.<i>.weight" [out, in] and "<name>.<i>.bias" [out] of the MLP, whose last
// layer has one unit, and with `softmax` no bias.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct TargetAttention {
  std::vector<int64_t> layers = {64};  // hidden layers of the MLP
  std::string activation = "sigmoid";  // after each of them
  bool softmax = false;

  static constexpr const char* kType = "target_attention";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
