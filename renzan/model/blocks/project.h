#pragma once

// Projects vectors to one dimension: W · x for each of another dimension, with a learned W [dim,
// its dimension] and no bias; the others as they are. For tables of several embedding dimensions:
// Ginart et al., "Mixed Dimension Embeddings with Application to Memory-Efficient Recommendation
// Systems", 2019. Takes any vectors; of a sequence it gives a sequence, whose positions share one
// W.
//
// Parameters: "<name>.<vector>.weight" for each vector of another dimension, or of a sequence
// "<name>.weight".

#include <cstdint>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Project {
  int64_t dim = 0;

  static constexpr const char* kType = "project";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
