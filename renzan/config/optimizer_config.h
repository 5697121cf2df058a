#pragma once

// Section `optimizer`.

#include <cstdint>
#include <map>
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
  std::string rows = "touched";
  void Describe(ConfigFields& fields);
};

// Lower rates where evaluations no longer improve. Its metric is compared apart from that of early
// stopping, because it decides the model and not when training ends.
struct PlateauConfig {
  std::string metric;    // empty: DefaultMetric() of the output
  int64_t patience = 0;  // evaluations; 0: never
  double min_delta = 0;
  double factor = 0.1;
  double floor = 0;
  bool operator==(const PlateauConfig&) const = default;
  void Describe(ConfigFields& fields);
};

struct ScheduleConfig {
  std::string type = "polynomial";
  int64_t warmup_steps = 0;
  int64_t decay_start_step = 0;
  int64_t decay_steps = 0;  // -1: until the end of the run
  double decay_power = 2;
  double decay_floor = 0;
  double rise_share = 0.3;  // of one_cycle, as the following
  double start_divisor = 25, end_divisor = 1e4;
  std::string curve = "cosine";
  PlateauConfig plateau;

  // Whether the length of the run determines the rate of every step.
  bool ends_with_run() const { return decay_steps < 0; }
  bool watches_evaluations() const { return plateau.patience > 0; }
  void Describe(ConfigFields& fields);
};

// Of a block of the model's graph.
struct BlockRateConfig {
  double learning_rate_factor = 1;
  bool frozen = false;
  bool operator==(const BlockRateConfig&) const = default;
  void Describe(ConfigFields& fields);
};

struct OptimizerConfig {
  DenseOptimizerConfig dense;
  SparseOptimizerConfig sparse;
  ScheduleConfig schedule;
  std::map<std::string, BlockRateConfig> blocks;  // by name; others are trained at full rates
  double max_gradient_norm = 0;                   // 0: no clipping
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
