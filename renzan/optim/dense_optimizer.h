#pragma once

// The optimizer of the flat dense parameters. It is element-wise, so any split of the work gives
// the same bits. See optimizer_steps.h for the formulas.
//
// Weight decay is decoupled from the gradient (Loshchilov & Hutter, "Decoupled weight decay
// regularization", 2019): w *= 1 - lr·decay before the step, as PyTorch's AdamW does, for every
// optimizer and every parameter, biases included.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

enum class DenseOptimizerType { kSgd, kAdagrad, kAdam };

// One entry for each type, in the order of the enumeration.
struct DenseOptimizerInfo {
  DenseOptimizerType type;
  const char* name;  // in the configuration
  // The names of its states in checkpoints, each as long as the parameters.
  std::span<const char* const> states;
};

std::span<const DenseOptimizerInfo> DenseOptimizers();
const DenseOptimizerInfo& InfoOf(DenseOptimizerType type);
std::vector<std::string> DenseOptimizerNames();

struct DenseOptimizerOptions {
  DenseOptimizerType type = DenseOptimizerType::kSgd;
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999;
  double initial_accumulator = 0;  // adagrad's s before the first step
  double weight_decay = 0;
};

// Parameters that are trained alike: those from the end of the last group to `end`.
struct ParameterGroup {
  size_t end = 0;
  double learning_rate_factor = 1;
  bool frozen = false;  // neither they nor their states ever change
};

class DenseOptimizer {
 public:
  DenseOptimizer(const DenseOptimizerOptions& options, size_t size);

  // Groups of all parameters, in order.
  void set_groups(std::vector<ParameterGroup> groups);
  // Sets the gradients of frozen parameters to 0, so that no norm counts them.
  void ClearFrozen(std::span<float> gradient) const;

  // How many steps its states have seen before step 0 of this run, where they are another run's:
  // Adam's bias correction continues from there.
  void set_earlier_steps(int64_t steps) { earlier_steps_ = steps; }
  int64_t earlier_steps() const { return earlier_steps_; }

  // One step over all parameters, including padding between them, where zeros stay zeros. `step` of
  // this run, from 0.
  void Apply(ThreadPool& pool, double learning_rate, int64_t step, std::span<const float> gradient,
             std::span<float> parameters);

  // The states to save, as DenseOptimizerInfo names them.
  struct State {
    std::string name;
    AlignedBuffer values;
  };
  std::vector<State>& states() { return states_; }

 private:
  // The numbers of one step of a group, each rounded to float32 once.
  struct Factors {
    float lr = 0, kept = 0;
    AdamFactors adam;
  };
  void ApplyTo(const Factors& factors, std::span<const float> gradient, size_t begin, size_t end,
               std::span<float> parameters);

  DenseOptimizerOptions options_;
  std::vector<State> states_;
  std::vector<ParameterGroup> groups_;
  std::vector<Factors> factors_;  // of each group
  int64_t earlier_steps_ = 0;
};

}  // namespace renzan
