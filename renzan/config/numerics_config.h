#pragma once

// Section `numerics`: the arithmetic.

#include <string>

#include "renzan/base/config/config.h"
#include "renzan/tensor/precision.h"

namespace renzan {

struct NumericsConfig {
  int virtual_workers = 8;
  std::string isa = "auto";
  std::string precision = "fp32";
  std::string embedding_precision = "fp32";
  int row_blocks = 0;  // of each table; 0: DefaultRowBlocks
  int column_blocks = 1;
  void Describe(ConfigFields& fields);
};

// The type of the values in matrix products; tf32's values are float32. Throws kConfig for an
// unknown word, because the configuration may not have come from a validated file.
Precision PrecisionOf(const NumericsConfig& config);

}  // namespace renzan
