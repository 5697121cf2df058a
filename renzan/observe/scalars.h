#pragma once

// Named numbers logged at a step. The tags follow TensorBoard: "train/loss", "eval/auc".

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
