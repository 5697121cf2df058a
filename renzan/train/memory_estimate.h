#pragma once

// How much memory a run will need, before anything is allocated.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/train/config.h"

namespace renzan {

// Bytes of one worker. Pages of mapped dataset files are not included: the kernel can drop them.
struct MemoryEstimate {
  int64_t tables = 0;   // rows and their optimizer states
  int64_t dense = 0;    // parameters, gradients, optimizer states, packed weights
  int64_t batches = 0;  // samples, ids, exchanges, activations, residuals of error feedback
  int64_t program = 0;  // code aside: libraries, stacks, heap

  int64_t total() const { return tables + dense + batches + program; }

  // At most this much more on any worker while a checkpoint is written: copies of the dense part,
  // which worker 0 writes, of residuals and of the rows that training changes meanwhile.
  int64_t checkpoint = 0;
};

// Of each worker. pooling_factors: mean lookups per sample of each categorical feature.
std::vector<MemoryEstimate> EstimateMemoryOfWorkers(const TrainConfig& config,
                                                    const DatasetSchema& schema,
                                                    std::span<const double> pooling_factors,
                                                    const ShardingPlan& plan, int workers,
                                                    int threads);

// Of the worker that needs most; `checkpoint` is the most on any worker.
MemoryEstimate MostOf(std::span<const MemoryEstimate> workers);

// Both.
MemoryEstimate EstimateMemory(const TrainConfig& config, const DatasetSchema& schema,
                              std::span<const double> pooling_factors, const ShardingPlan& plan,
                              int workers, int threads);

// "234 MiB (tables 160 MiB), at most 161 MiB more while a checkpoint is written"
std::string Describe(const MemoryEstimate& estimate);

}  // namespace renzan
