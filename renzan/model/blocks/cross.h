#pragma once

// DCNv2's cross network: x_{l+1} = x_0 ⊙ (W_l x_l + b_l) + x_l, with W_l [width, width], or a
// product of two matrices of a low rank, W_l V_l with V_l [rank, width] and W_l [width, rank]. Wang
// et al., "DCN V2: Improved Deep & Cross Network", WWW 2021. Takes any vectors, gives one of the
// same width.
//
// Parameters: "<name>.<l>.v", if the rank is low, "<name>.<l>.w" and "<name>.<l>.bias".

#include <cstdint>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Cross {
  int layers = 3;
  int64_t rank = 0;  // 0: whole matrices

  static constexpr const char* kType = "cross";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
