#pragma once

// All vectors of its inputs, one after the other. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Concat {
  static constexpr const char* kType = "concat";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
