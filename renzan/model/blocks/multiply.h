#pragma once

// The product of its inputs, element by element; they have the same width. Of one
// sequence's vectors, a sequence. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Product {
  static constexpr const char* kType = "multiply";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
