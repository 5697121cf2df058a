#pragma once

// Pools the vectors of a sequence, or any vectors of one dimension, into one: their sum or mean, or
// the last. Zeros for an empty sequence. No parameters.

#include <string>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Pool {
  std::string method = "mean";  // sum, mean, last

  static constexpr const char* kType = "pool";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
