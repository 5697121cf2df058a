#pragma once

// Made-up workloads: jobs arrive at random, most are small and short, few are large and long. A
// pure function of its options: the same seed makes the same jobs.

#include <cstdint>
#include <string_view>

#include "renzan/base/config.h"
#include "renzan/cluster/simulate/workload.h"

namespace renzan::cluster::simulate {

struct GenerateOptions {
  int64_t jobs = 1000;
  uint64_t seed = 1;
  double load = 0.9;           // GPU time submitted per GPU time there is
  double size_exponent = 1.3;  // a job of 2n GPUs is 2^-exponent times as frequent as one of n
  double largest_share = 0.5;  // of the cluster's GPUs, of the largest job
  double median_minutes = 20;  // of log-normal run times
  double sigma = 1.5;          // of their logarithm
  int queues = 4;              // the first is the largest: queue q gets a share ~ 1 / (1 + q)
  int users_per_queue = 3;
  double high_priority_share = 0.1;
  double elastic_share = 0.2;  // of jobs with more than one GPU
  double checkpoint_share = 0.8;
  double restart_seconds = 30;
  double checkpoint_seconds = 5;

  void Describe(ConfigFields& fields);
};

// Reads "jobs=500,seed=7". Throws Error kConfig for unknown keys and impossible values.
GenerateOptions ReadGenerateOptions(std::string_view text);

// `cluster` says how many GPUs there are, on what nodes. Throws Error kUsage if it has none.
Workload GenerateWorkload(const GenerateOptions& options, const Snapshot& cluster);

}  // namespace renzan::cluster::simulate
