#pragma once

// A function of each value (activation_layer.h, which names its parameters), where no `mlp` applies
// it. Takes any vectors, gives the same ones; of a sequence a sequence, unless
// the function has parameters.

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
