#pragma once

// An input of a block whose vectors are the positions of a sequence. Other vectors of one dimension
// are a sequence that is always full.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "renzan/model/blocks/block.h"

namespace renzan {

// How many positions of a sample are used.
inline int64_t LengthOf(const SequenceId& sequence, const BlockPass& pass, int64_t sample) {
  return pass.lengths[sequence.index][static_cast<size_t>(sample)] + sequence.appended;
}

// Makes the positions zero that samples do not use: `columns` of each are a position's. For blocks
// that give a sequence, and for the gradients that they get.
inline void ZeroUnused(const std::optional<SequenceId>& sequence, const BlockPass& pass,
                       int64_t columns, BlockedMatrix* x) {
  if (!sequence) return;
  constexpr int64_t kZeros = 64;
  constexpr float zeros[kZeros] = {};
  for (int64_t i = 0; i < x->rows(); ++i)
    for (int64_t c = LengthOf(*sequence, pass, i) * columns; c < x->columns(); c += kZeros)
      x->SetRow(i, c, zeros, std::min(kZeros, x->columns() - c));
}

// The sequence that blocks with several inputs give if each position of the result comes from the
// same one of each: that of all inputs, if they have vectors of the same dimensions.
inline std::optional<SequenceId> SequenceOfAll(const BlockPlace& place) {
  for (size_t i = 0; i < place.inputs.size(); ++i)
    if (place.SequenceOf(i) != place.SequenceOf(0) ||
        place.inputs[i].size() != place.inputs[0].size())
      return std::nullopt;
  return place.SequenceOf(0);
}

class SequenceInputOf {
 public:
  // Rejects an input whose vectors have several dimensions, or are padded.
  SequenceInputOf(const BlockPlace& place, size_t input)
      : positions_(std::ssize(place.inputs[input])),
        dim_(place.DimOfAll(input)),
        sequence_(place.SequenceOf(input)) {
    if (input < place.padded.size() && place.padded[input])
      place.Reject(
          "would take unused positions of a sequence for used ones, because a block before it does "
          "not tell them apart: give it the sequence itself");
  }

  int64_t positions() const { return positions_; }
  int64_t dim() const { return dim_; }
  int64_t columns() const { return positions_ * dim_; }
  const std::optional<SequenceId>& sequence() const { return sequence_; }

  // How many positions of a sample are used.
  int64_t LengthOf(const BlockPass& pass, int64_t sample) const {
    return sequence_ ? renzan::LengthOf(*sequence_, pass, sample) : positions_;
  }
  // In a matrix with as many positions.
  void ZeroUnused(const BlockPass& pass, BlockedMatrix* x) const {
    renzan::ZeroUnused(sequence_, pass, x->columns() / positions_, x);
  }

 private:
  int64_t positions_, dim_;
  std::optional<SequenceId> sequence_;
};

}  // namespace renzan
