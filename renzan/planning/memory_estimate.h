#pragma once

// How much memory a run will need, before anything is allocated.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/plan/sharding_plan.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Bytes of one worker. Pages of mapped dataset files are not included: the kernel can drop them.
struct MemoryEstimate {
  int64_t tables = 0;   // rows and their optimizer states
  int64_t dense = 0;    // parameters, gradients, optimizer states, packed weights
  int64_t batches = 0;  // samples, ids, exchanges, activations, residuals of error feedback
  int64_t program = 0;  // code aside: libraries, stacks, heap
  // While a checkpoint is written: copies of the dense part (on worker 0) and of residuals, row
  // numbers, and some copies of rows that training changes meanwhile.
  int64_t checkpoint = 0;
  int64_t few_copies = 0;  // the last of these

  int64_t without_checkpoint() const { return tables + dense + batches + program; }
  int64_t total() const { return without_checkpoint() + checkpoint; }

  // At most this much more for such copies, if there is memory; otherwise training waits.
  int64_t more_copies = 0;
};

// One estimate per worker.
std::vector<MemoryEstimate> EstimateMemoryOfWorkers(const RunSpec& spec, const ShardingPlan& plan,
                                                    int workers, int threads);

// The estimate of the worker that needs the most.
MemoryEstimate MostOf(std::span<const MemoryEstimate> workers);

// The same in one call.
MemoryEstimate EstimateMemory(const RunSpec& spec, const ShardingPlan& plan, int workers,
                              int threads);

// "234 MiB (tables 160 MiB); 2 MiB more while a checkpoint is written, at most 161 MiB if there is
// room"
std::string Describe(const MemoryEstimate& estimate);

}  // namespace renzan
