#pragma once

// A function of each value (nn/activation.h), where no `mlp` applies it. No parameters.

#include <string>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct ActivationFunction {
  std::string function = "relu";

  static constexpr const char* kType = "activation";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
