#pragma once

// Synthetic workloads: random arrivals, many small and short jobs, few large and long ones. A pure
// function of the options: the same seed gives the same jobs.

#include <cstdint>
#include <string_view>

#include "renzan/base/config/config.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

struct GenerateOptions {
  int64_t jobs = 1000;
  uint64_t seed = 1;
  double load = 0.9;           // GPU time submitted per available GPU time
  double size_exponent = 1.3;  // a job of 2n GPUs is 2^-exponent times as frequent as one of n
  double largest_share = 0.5;  // of the cluster's GPUs, for the largest job
  double median_minutes = 20;  // of log-normal run times
  double sigma = 1.5;          // of their logarithm
  int queues = 4;              // the first is the largest: queue q gets a share ~ 1 / (1 + q)
  int users_per_queue = 3;
  double high_priority_share = 0.1;
  double elastic_share = 0.2;  // of jobs with more than one GPU
  double checkpoint_share = 0.8;
  double failing_share = 0;  // of jobs; see DrawFailures()
  double restart_seconds = 30;
  double checkpoint_seconds = 5;

  void Describe(ConfigFields& fields);
};

// Parses "jobs=500,seed=7". Throws Error kConfig for unknown keys and invalid values.
GenerateOptions ReadGenerateOptions(std::string_view text);

// For the nodes and GPUs of `cluster`. Throws Error kUsage if it has no GPUs.
Workload GenerateWorkload(const GenerateOptions& options, const Snapshot& cluster);

}  // namespace renzan::cluster::simulate
