#pragma once

// The optimizers of embedding rows, for code that does not compute a step. The formulas are in
// optimizer_steps-inl.h, and sparse_step-inl.h chooses between them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/optim/optimizer_steps.h"

namespace renzan {

enum class SparseOptimizerType { kSgd, kAdagrad, kRowWiseAdagrad, kAdam, kMomentum, kFtrl };
enum class WeightDecayMode { kDecoupled, kL2 };

struct SparseState {
  const char* name;      // in checkpoints
  bool per_row = false;  // one float for a whole row, instead of one for each of its values
};

// One entry for each type, in the order of the enumeration.
struct SparseOptimizerInfo {
  SparseOptimizerType type;
  const char* name;  // in the configuration
  // What each row has of each, one after another.
  std::span<const SparseState> states;
  // Whether `initial_accumulator` is what states begin as; otherwise they begin as zeros.
  bool has_accumulator = true;
  // Whether a step depends on how many the states have seen.
  bool counts_steps = false;
  bool runs_on_gpu = true;
  // Whether all rows can take its steps, also those that no sample looks up.
  bool moves_all_rows = true;

  // Floats of state: for each value of a row, and for each row.
  int state_per_value() const;
  int state_per_row() const;
};

std::span<const SparseOptimizerInfo> SparseOptimizers();
const SparseOptimizerInfo& InfoOf(SparseOptimizerType type);
std::vector<std::string> SparseOptimizerNames();

struct SparseOptimizerOptions {
  SparseOptimizerType type = SparseOptimizerType::kSgd;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double beta1 = 0.9, beta2 = 0.999;  // of Adam
  double momentum = 0.9;              // of SGD with momentum
  double beta = 1, l1 = 0, l2 = 0;    // of FTRL
  double weight_decay = 0;
  WeightDecayMode weight_decay_mode = WeightDecayMode::kDecoupled;
  // Whether rows that no sample looks up take steps, too, with a gradient of 0.
  bool all_rows = false;
};

// Whether such a step changes any row. Without weight decay, SGD's and Adagrad's does not.
bool IdleRowsMove(const SparseOptimizerOptions& options);

// For a row of `dim` values.
inline int64_t StateFloatsPerRow(SparseOptimizerType type, int64_t dim) {
  const SparseOptimizerInfo& info = InfoOf(type);
  return info.state_per_value() * dim + info.state_per_row();
}

// The place of a state among the floats of a row's state.
struct StatePart {
  int64_t first = 0, width = 0;
};
// Of the `state`-th state of a row of `dim` values.
StatePart PartOfState(SparseOptimizerType type, size_t state, int64_t dim);

// What every float of a row's state begins as.
float InitialStateOf(const SparseOptimizerOptions& options);

// The numbers of one step, each rounded to float32 once.
struct SparseFactors {
  SparseOptimizerType type = SparseOptimizerType::kSgd;
  float lr = 0, epsilon = 0;
  AdamFactors adam;
  float momentum = 0;
  float beta = 0, l1 = 0, l2 = 0;  // of FTRL
};
// `step`: how many steps the states have seen.
SparseFactors FactorsOf(const SparseOptimizerOptions& options, double learning_rate, int64_t step);

// Values take such steps in groups of so many.
inline constexpr size_t kIdleLanes = 16;

// A step of a row that no sample looks up: w *= kept, then the optimizer's step.
struct IdleStep {
  SparseFactors optimizer;
  float kept = 1;
};
// Some of them, one after another; the gradient of each is l2·w.
struct IdleSteps {
  std::span<const IdleStep> steps;
  float l2 = 0;
  bool decays = false;  // whether l2 or any `kept` makes weights smaller
  float most_rate = 0;  // at least the learning rate of each
};

}  // namespace renzan
