#pragma once

// Section `training`: what is minimised, how much is learned, and what is reported.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"

namespace renzan {

struct EarlyStoppingConfig {
  std::string output;    // whose metric; empty: of the only one
  std::string metric;    // empty: DefaultMetric() of the output
  int64_t patience = 0;  // evaluations; 0: never stop early
  double min_delta = 0;
  std::string watched() const { return output.empty() ? metric : output + "." + metric; }
  void Describe(ConfigFields& fields);
};

struct LossConfig {
  double pos_weight = 1;
  double label_smoothing = 0;
  void Describe(ConfigFields& fields);
};

struct TrainingConfig {
  std::string initialize_from;     // a run, model or checkpoint; empty: initial values are drawn
  bool initialize_partly = false;  // also from a model that has other parts, what both have
  int64_t batch_size = 2048;
  LossConfig loss;
  double epochs = 1;
  int64_t max_steps = -1;  // -1: no limit; 0: save the initial model
  int64_t log_every = 100;
  int64_t eval_every = 0;  // steps; 0 and 0 epochs: at the end only
  double eval_every_epochs = 0;
  std::vector<int64_t> ranking;  // ranks K at which evaluations measure rankings; none: they do not
  std::string group_by;          // the key or feature of group AUC in evaluations; empty: none
  EarlyStoppingConfig early_stopping;
  bool keep_best = false;

  // Whether evaluations decide when training stops or which model is kept.
  bool watches_evaluations() const { return keep_best || early_stopping.patience > 0; }
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
