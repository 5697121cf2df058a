#pragma once

// Adds to each vector of a sequence a learned one of its position, so that attention can tell
// positions apart: Vaswani et al., "Attention Is All You Need", 2017. Positions count from the last
// one that a sample uses, the newest of a history, so that it always has the same vector, whatever
// the length. Takes a sequence, or other vectors of one dimension, and gives the same.
//
// Parameters: "<name>.weight" [positions · dim], the vector of the newest position last.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Positions {
  static constexpr const char* kType = "positions";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
