#pragma once

// A mixture of experts by a gate that depends on the sample: Σ_i softmax(W x)_i e_i, where x is the
// first input and the others are the experts e_i, all of one width. Ma et al., "Modeling Task
// Relationships in Multi-task Learning with Multi-gate Mixture-of-Experts", KDD 2018 (a gate for
// each task, over the same experts), and Tang et al., "Progressive Layered Extraction", RecSys 2020
// (over a task's own and the shared experts). Takes any vectors and gives one.
//
// Parameters: "<name>.weight" [experts, width of x], without a bias, as both papers.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Gate {
  static constexpr const char* kType = "gate";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
