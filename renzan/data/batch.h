#pragma once

// A slice of samples in memory, in columns. Plain data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

// The ids of one categorical feature for a slice of samples.
struct FeatureIds {
  // One-hot: `offsets` is empty and values has one id per sample, [batch].
  // Multi-hot (jagged): sample i owns values[offsets[i] .. offsets[i+1]), offsets is [batch + 1];
  // a bag may be empty.
  std::vector<int64_t> values;
  std::vector<int32_t> offsets;
  // Of each of `values`, finite; empty if the feature has no weights.
  std::vector<float> weights = {};

  bool one_hot() const { return offsets.empty(); }
};

struct Batch {
  int64_t size = 0;
  // [labels, size]: those of the schema's `label`, then of each of its `further_labels`. 0, 1, or
  // NaN where the row lacks it. Empty if the rows have no labels.
  std::vector<float> label;
  std::vector<float> weight;            // [size], not negative; empty if samples have none
  std::vector<float> dense;             // [size, num_dense], finite
  std::vector<FeatureIds> categorical;  // [num_categorical], ids in [0, num_embeddings)
  // Drawn for training (sampled_negatives.h), as if there were further categorical features, of
  // several values. Empty otherwise.
  std::vector<FeatureIds> negatives;

  // [size]; none if the rows have no labels.
  std::span<const float> labels(size_t column) const {
    if (label.empty()) return {};
    return std::span(label).subspan(column * static_cast<size_t>(size), static_cast<size_t>(size));
  }
};

}  // namespace renzan
