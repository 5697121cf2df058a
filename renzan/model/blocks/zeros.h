#pragma once

// One vector of zeros, without input: what takes the place of the bottom MLP's output where there
// are no dense features. No parameters.

#include <cstdint>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Zeros {
  int64_t dim = 0;

  static constexpr const char* kType = "zeros";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
