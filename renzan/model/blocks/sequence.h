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

// The rows that n samples have of a sequence in kRows or kNewest.
inline int64_t RowsOf(const SequenceId& sequence, VectorLayout layout, const BlockPass& pass,
                      int64_t n) {
  int64_t rows = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = LengthOf(sequence, pass, i);
    rows += layout == VectorLayout::kNewest ? std::min<int64_t>(length, 1) : length;
  }
  return rows;
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

// Of a sample: its rows in a matrix with one for each vector, and in one of results.
struct SampleRows {
  int64_t sample = 0;
  int64_t first = 0, used = 0;
  int64_t first_result = 0, results = 0;
  int64_t newest() const { return first + used - 1; }
};

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
  int64_t RowsOf(const BlockPass& pass, int64_t n) const {
    return sequence_ ? renzan::RowsOf(*sequence_, VectorLayout::kRows, pass, n) : n * positions_;
  }

  // Calls body(SampleRows) for the samples of a matrix with `rows` rows, one for each vector, but
  // not those at the end that have none. `only_newest`: results are the newest ones' alone.
  template <typename Body>
  void ForEachSample(const BlockPass& pass, int64_t rows, bool only_newest,
                     const Body& body) const {
    for (SampleRows of; of.first < rows; ++of.sample) {
      of.used = LengthOf(pass, of.sample);
      of.results = only_newest ? std::min<int64_t>(of.used, 1) : of.used;
      body(of);
      of.first += of.used;
      of.first_result += of.results;
    }
  }

  // Copies a sample's first `used` vectors out of the input's matrix or into one like it. They are
  // in the rows from `row` on if this is a sequence, in the sample's columns otherwise.
  void Get(const BlockedMatrix& from, int64_t sample, int64_t row, int64_t used, float* to) const {
    if (!sequence_) return from.GetRow(sample, 0, to, used * dim_);
    for (int64_t v = 0; v < used; ++v) from.GetRow(row + v, 0, to + v * dim_, dim_);
  }
  void Set(const float* from, int64_t sample, int64_t row, int64_t used, BlockedMatrix* to) const {
    if (!sequence_) return to->SetRow(sample, 0, from, used * dim_);
    for (int64_t v = 0; v < used; ++v) to->SetRow(row + v, 0, from + v * dim_, dim_);
  }

 private:
  int64_t positions_, dim_;
  std::optional<SequenceId> sequence_;
};

}  // namespace renzan
