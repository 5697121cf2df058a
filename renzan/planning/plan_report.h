#pragma once

// What a plan means for a run, and what would make it fit or faster.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/plan/cost_model.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/planning/device_options.h"

namespace renzan {

struct PlannedRun {
  std::vector<TableSpec> tables;
  ShardingPlan plan;
  Topology topology;
  RunCosts run;
  std::vector<WorkerCost> workers;
  StepEstimate step;
  std::optional<DeviceNeed> gpu;  // with device: cuda, for the worker that needs the most

  double memory_bytes(size_t worker) const {
    return workers[worker].memory_bytes() + run.fixed_memory_bytes;
  }
  double most_memory_bytes() const;
  bool fits() const { return fits_host() && fits_gpu(); }
  bool fits_host() const {
    return topology.rates.memory_bytes <= 0 || most_memory_bytes() <= topology.rates.memory_bytes;
  }
  bool fits_gpu() const {
    return !gpu || topology.rates.gpu_memory_bytes <= 0 ||
           static_cast<double>(gpu->bytes) <= topology.rates.gpu_memory_bytes;
  }
};

// What evaluations rank (training.ranking).
struct RankingNeed {
  struct Output {
    std::string name;  // "" of the only one
    int64_t candidates = 0, width = 0;
    int64_t rows = 0;  // ranked at each evaluation, by all workers together
    // A row's products with all candidates; a multiply-add counts as two.
    double flops_per_row() const {
      return 2 * static_cast<double>(candidates) * static_cast<double>(width);
    }
  };
  std::vector<Output> outputs;
  int64_t bytes = 0;  // on each worker
};

// All inputs of a plan.
struct PlanInput {
  TrainConfig config;
  DatasetSchema schema;
  std::vector<double> pooling_factors;
  int64_t rows = 0;  // to train on; 0: no data is given
  std::optional<RankingNeed> ranking = {};
  Topology topology;
  int threads = 1;
};

PlannedRun PlanRun(const PlanInput& input);

struct NamedPhase {
  const char* name;
  double seconds;
};
// In the order of a step; "catch up" only where rows move that no sample looks up.
std::vector<NamedPhase> PhasesOf(const StepEstimate& step);
// The name of the longest phase.
const char* BottleneckOf(const StepEstimate& step);

struct Advice {
  std::string change;
  double step_seconds = 0, most_memory_bytes = 0;
  bool fits = false;
};

// Changes of the configuration that would make the run fit or, if it fits, shorten its step by at
// least a twentieth; the best first. Each change has been planned.
std::vector<Advice> WhatWouldHelp(const PlanInput& input, const PlannedRun& now);

// The features that a configuration records, for planning without data. Throws kConfig if it
// records none.
DatasetSchema SchemaOf(const TrainConfig& config);

}  // namespace renzan
