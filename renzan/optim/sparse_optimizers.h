#pragma once

// The optimizers of embedding rows, for code that does not compute a step. The formulas are in
// optimizer_steps.h and optimizer_steps-inl.h.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace renzan {

enum class SparseOptimizerType { kSgd, kAdagrad, kRowWiseAdagrad };
enum class WeightDecayMode { kDecoupled, kL2 };

// One entry for each type, in the order of the enumeration.
struct SparseOptimizerInfo {
  SparseOptimizerType type;
  const char* name;   // in the configuration
  const char* state;  // the name of its state in checkpoints; "" if there is none
  // Floats of state: for each value of a row, and for each row.
  int state_per_value, state_per_row;
};

std::span<const SparseOptimizerInfo> SparseOptimizers();
const SparseOptimizerInfo& InfoOf(SparseOptimizerType type);
std::vector<std::string> SparseOptimizerNames();

struct SparseOptimizerOptions {
  SparseOptimizerType type = SparseOptimizerType::kSgd;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double weight_decay = 0;
  WeightDecayMode weight_decay_mode = WeightDecayMode::kDecoupled;
};

// For a row of `dim` values.
inline int64_t StateFloatsPerRow(SparseOptimizerType type, int64_t dim) {
  const SparseOptimizerInfo& info = InfoOf(type);
  return info.state_per_value * dim + info.state_per_row;
}

}  // namespace renzan
