#pragma once

// FinalMLP's fusion of two streams x and y, vectors of any dimensions: the logit w_x·x + w_y·y + b
// + Σ_h x_hᵀ W_h y_h, where x_h and y_h are the h-th of `heads` equal parts of x and y. Mao et al.,
// "FinalMLP: An Enhanced Two-Stream MLP Model for CTR Prediction", AAAI 2023. Takes x, then y.
//
// Parameters, for x of a columns and y of b: "<name>.x.weight" [1, a], "<name>.y.weight" [1, b],
// "<name>.bias" [1], and for each head "<name>.<h>.weight" [a / heads, b / heads]. These begin as the
// weights of one linear layer over all products x_i y_j, as in the authors' code.

#include <cstdint>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Bilinear {
  int64_t heads = 1;  // both widths are multiples of it

  static constexpr const char* kType = "bilinear";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
