#pragma once

// Each sample's columns divided by their Euclidean length: x / max(‖x‖, epsilon), as
// torch.nn.functional.normalize. With it before a product, two towers compare directions: the
// product is the cosine. `per_vector` divides each vector by its own length. Takes any vectors,
// gives the same ones; of a sequence with `per_vector`, a sequence. No parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct L2Normalize {
  bool per_vector = false;
  double epsilon = 1e-12;

  static constexpr const char* kType = "l2_normalize";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
