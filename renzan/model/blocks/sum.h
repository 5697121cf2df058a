#pragma once

// The sum of its inputs, which have the same width. The sum of logits is a logit, that of one
// sequence's vectors a sequence: what a residual needs. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Sum {
  static constexpr const char* kType = "sum";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
