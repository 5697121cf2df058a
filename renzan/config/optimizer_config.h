#pragma once

// Section `optimizer`.

#include <cstdint>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan {

struct DenseOptimizerConfig {
  std::string type = "sgd";
  double learning_rate = 0.1;
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999;
  double initial_accumulator = 0;
  double weight_decay = 0;
  void Describe(ConfigFields& fields);
};

struct SparseOptimizerConfig {
  std::string type = "sgd";
  double learning_rate = 0.1;
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999;
  double momentum = 0.9;
  double beta = 1, l1 = 0, l2 = 0;
  double initial_accumulator = 0;
  double weight_decay = 0;
  std::string weight_decay_mode = "decoupled";
  void Describe(ConfigFields& fields);
};

struct ScheduleConfig {
  int64_t warmup_steps = 0;
  int64_t decay_start_step = 0;
  int64_t decay_steps = 0;  // -1: until the end of the run
  double decay_power = 2;
  double decay_floor = 0;

  // Whether the length of the run determines the rate of every step.
  bool ends_with_run() const { return decay_steps < 0; }
  void Describe(ConfigFields& fields);
};

struct OptimizerConfig {
  DenseOptimizerConfig dense;
  SparseOptimizerConfig sparse;
  ScheduleConfig schedule;
  double max_gradient_norm = 0;  // 0: no clipping
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
