#pragma once

// Appends a vector, such as the candidate item, to a sequence, such as the items of a history:
// directly behind the last position that a sample uses. Takes a sequence, or other vectors of one
// dimension, and a vector of it; gives a sequence with one position more. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Append {
  static constexpr const char* kType = "append";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
