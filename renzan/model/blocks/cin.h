#pragma once

// xDeepFM's compressed interaction network, over m vectors of one dimension D, X^0. Layer k has
// feature maps X^k_h = Σ_{i,j} W^{k,h}_{ij} (X^{k-1}_i ∘ X^0_j), vectors of dimension D, too. Gives
// one vector: the sums of all maps of all layers over D. Lian et al., "xDeepFM: Combining Explicit
// and Implicit Feature Interactions for Recommender Systems", KDD 2018.
//
// As in FuxiCTR's CompressedInteractionNet, there is no activation, and all maps of a layer are
// both summed and passed on ("split half" passes on half of them). Unlike there, and as in the
// paper, maps have no bias.
//
// Parameters: "<name>.<k>.weight" [layers[k], maps before · m], from k = 0; column i · m + j is for
// map (or vector) i and vector j.

#include <cstdint>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Cin {
  std::vector<int64_t> layers = {16, 16};  // their numbers of maps

  static constexpr const char* kType = "cin";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
