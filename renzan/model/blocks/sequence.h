#pragma once

// An input of a block whose vectors are the positions of a sequence. Other vectors of one dimension
// are a sequence that is always full.

#include <cstdint>
#include <optional>

#include "renzan/model/blocks/block.h"

namespace renzan {

class SequenceInputOf {
 public:
  // Rejects an input whose vectors have several dimensions, or are padded.
  SequenceInputOf(const BlockPlace& place, size_t input)
      : positions_(std::ssize(place.inputs[input])),
        dim_(place.DimOfAll(input)),
        sequence_(input < place.sequences.size() ? place.sequences[input] : std::nullopt) {
    if (input < place.padded.size() && place.padded[input])
      place.Reject(
          "would take unused positions of a sequence for used ones, because a block before it does "
          "not tell them apart: give it the sequence itself");
  }

  int64_t positions() const { return positions_; }
  int64_t dim() const { return dim_; }
  int64_t columns() const { return positions_ * dim_; }
  std::optional<size_t> sequence() const { return sequence_; }

  // How many positions of a sample are used.
  int64_t LengthOf(const BlockPass& pass, int64_t sample) const {
    return sequence_ ? pass.lengths[*sequence_][static_cast<size_t>(sample)] : positions_;
  }

 private:
  int64_t positions_, dim_;
  std::optional<size_t> sequence_;
};

}  // namespace renzan
