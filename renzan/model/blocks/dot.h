#pragma once

// DLRM's dot interaction (dot_interaction.h): takes vectors of one dimension, gives the first one
// as it is and the products of all pairs. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Dot {
  static constexpr const char* kType = "dot";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
