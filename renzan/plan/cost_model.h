#pragma once

// What a plan costs: the memory of each worker, and the time of each phase of a step. A pure
// function of the tables, the run and the machine; docs/sharding.md describes it.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/plan/idle_rows_cost.h"
#include "renzan/plan/sharding_plan.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

// Rates of one worker, per second, and its memory. Defaults: two cores of a server, exchanging over
// TCP.
struct MachineRates {
  double matrix_flops = 200e9;
  double stream_bytes = 20e9;        // arrays in order, read plus written
  double row_bytes = 10e9;           // embedding rows at random
  double intra_host_bytes = 1.7e9;   // exchanged with workers on the same host, each way
  double inter_host_bytes = 1.2e9;   // with other hosts
  double exchange_seconds = 128e-6;  // an exchange of no data
  double memory_bytes = 0;           // 0: unlimited
  double gpu_memory_bytes = 0;       // of a worker's GPU; 0: unknown
  int threads = 2;                   // of a worker; determines its scratch memory

  // For MPI, which uses shared memory within a host.
  void UseSharedMemory() {
    intra_host_bytes = 12e9;
    exchange_seconds = 16e-6;
  }
};

inline constexpr int kMostWorkers = 1024;

struct Topology {
  std::vector<IndexRange> hosts;  // the ranks of each, in order
  MachineRates rates = {};

  int workers() const { return hosts.back().end; }
  static Topology OneHost(int workers) { return {.hosts = {{0, workers}}}; }
};

// What else about a run affects its costs.
struct RunCosts {
  int64_t batch = 1;  // global
  int virtual_workers = 1;
  double value_bytes = 4;                  // of rows in memory
  RowCodec forward = RowCodec::kFloat32;   // of pooled rows
  RowCodec backward = RowCodec::kFloat32;  // of their gradients
  double dense_wire_bytes = 4;
  // Floats of optimizer state: for each value of a row, and for each row.
  double state_per_value = 0, state_per_row = 0;
  IdleRowSteps idle = {};             // of rows that no sample looks up
  double flops_per_sample = 0;        // of the dense part, forward and backward
  double activations_per_sample = 0;  // values that its layers produce
  double inputs_per_sample = 0;       // values of the dataset: ids, dense features, label
  double pooled_per_sample = 0;       // values of pooled rows, all tables
  double parameters = 0;              // of the dense part
  double dense_states = 0;            // of its optimizer, per parameter
  double dense_value_bytes = 4;       // of activations, their gradients and packed weights
  bool defers_gradients = false;      // no virtual worker's dense gradient is written
  // What a worker needs apart from its shards.
  double fixed_memory_bytes = 0;
};

// What one shard costs each worker that holds it.
struct ShardCost {
  double lookup_seconds = 0, update_seconds = 0;
  double receive_seconds = 0;   // to decode gradients
  double catch_up_seconds = 0;  // of rows that no sample looks up, on average
  double pooled_bytes = 0;      // of the whole batch on the wire
  double gradient_bytes = 0;    // likewise
  double table_bytes = 0;       // rows, states, bits of rows (drawn, dirty, trained)
  double exchange_bytes = 0;    // memory of ids, gradients and messages
  double checkpoint_bytes = 0;  // while one is written
};

// Memory that must be available for copies of changed rows while a checkpoint is written.
inline constexpr int64_t kFewCopiesBytes = 32 << 20;

ShardCost CostOfShard(const Shard& shard, const TableSpec& table, const RunCosts& run,
                      const Topology& topology);

// A worker's costs: sums over its shards.
struct WorkerCost {
  double lookup_seconds = 0, receive_seconds = 0, update_seconds = 0, catch_up_seconds = 0;
  double pooled_bytes = 0, gradient_bytes = 0;  // of shards that only it holds
  double replicated_gradient_bytes = 0;         // of the whole batch, of replicated shards
  double table_bytes = 0, exchange_bytes = 0, checkpoint_bytes = 0;

  void Add(const Shard& shard, const ShardCost& cost, double sign = 1);
  // Of its shards, apart from what others wait for.
  double table_seconds() const { return lookup_seconds + update_seconds + catch_up_seconds; }
  double memory_bytes() const {
    return table_bytes + exchange_bytes + checkpoint_bytes +
           std::min(table_bytes, static_cast<double>(kFewCopiesBytes));
  }
};

// Seconds of the phases of a step. A phase lasts as long as its slowest worker, because the next
// phase needs all workers' results. An exchange counts in the phase that hides it.
struct StepEstimate {
  double reading = 0;   // batches, by a thread that shares the cores; and the exchange of ids
  double catch_up = 0;  // of rows that no sample looks up, where they move, too
  double lookup = 0;
  double output_dist = 0;  // and packing of parameters
  double forward_and_backward = 0;
  double gradients = 0;  // to owners, and the local part of the dense reduction
  double update = 0;     // of the tables, and the exchange of dense gradients
  double dense_update = 0;
  double total() const {
    return reading + catch_up + lookup + output_dist + forward_and_backward + gradients + update +
           dense_update;
  }
};

StepEstimate EstimateStep(std::span<const WorkerCost> workers, const RunCosts& run,
                          const Topology& topology);

// Seconds of each worker's own part of the phases of StepEstimate that depend on its shards, with
// what else they hold: a phase lasts as long as its slowest worker's.
struct WorkerTimes {
  double catch_up = 0;
  double lookup = 0;
  double output_dist = 0;
  double gradients = 0;
  double update = 0;
};

std::vector<WorkerTimes> TimesOfWorkers(std::span<const WorkerCost> workers, const RunCosts& run,
                                        const Topology& topology);

// The costs of all workers under a plan.
std::vector<WorkerCost> CostsOfPlan(const ShardingPlan& plan, std::span<const TableSpec> tables,
                                    const RunCosts& run, const Topology& topology);

}  // namespace renzan
