#pragma once

// Compares the models in two checkpoints bit by bit, ignoring metric accumulators.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"

namespace renzan {

struct ModelDiff {
  struct First {
    std::string key;
    int64_t index = 0;  // row-major
    double a = 0, b = 0;
  };

  int64_t step_a = 0, step_b = 0;
  std::vector<std::string> only_in_a, only_in_b;
  // Keys of tensors that cannot be compared: of another shape, or whose types differ and are not
  // both read as float32.
  std::vector<std::string> other_shape;
  int64_t tensors = 0;  // compared
  int64_t tensors_differing = 0;
  int64_t values = 0;
  int64_t values_differing = 0;   // in their bits: 0 and -0 differ, a NaN equals itself
  double max_abs_difference = 0;  // infinite if a value is not finite
  std::optional<First> first;     // in the order of the keys

  // Whether both are the same model at the same step.
  bool same() const {
    return step_a == step_b && only_in_a.empty() && only_in_b.empty() && other_shape.empty() &&
           tensors_differing == 0;
  }
};

// Verifies both; reads them in pieces, in constant memory.
ModelDiff DiffModels(CheckpointReader& a, CheckpointReader& b);

}  // namespace renzan
