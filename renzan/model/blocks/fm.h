#pragma once

// The second order of a factorization machine: the sum of the products of all pairs of vectors,
// which have one dimension. Rendle, "Factorization Machines", ICDM 2010. Gives a logit. No
// parameters.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Fm {
  static constexpr const char* kType = "fm";
  void Describe(ConfigFields&) {}
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
