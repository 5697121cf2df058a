#pragma once

// What is logged at a step: named numbers. The tags are TensorBoard's: "train/loss", "eval/auc".

#include <cstdint>
#include <string>
#include <vector>

namespace renzan {

struct Scalar {
  std::string tag;
  double value = 0;
};

struct ScalarRecord {
  int64_t step = 0;
  double unix_seconds = 0;
  std::vector<Scalar> scalars;
};

}  // namespace renzan
