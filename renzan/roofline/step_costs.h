#pragma once

// What each phase of a training step has to do at least, and how long this machine needs for that.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/state/model_state.h"

namespace renzan {

struct PhaseCost {
  std::string phase;        // as in traces
  double flops = 0;         // of matrix products and interactions
  double stream_bytes = 0;  // read and written in order
  double row_bytes = 0;     // of embedding rows, read and written at random
};

// Rates per second over all threads (machine_limits.h).
struct MachineLimits {
  double matrix_flops = 0, stream_bytes = 0, row_bytes = 0;
};

// Rows that no sample looks up, where they move, too.
struct MovedRows {
  std::vector<double> rows;  // ShardedEmbeddings::MovingRows, on average
  double interval = 1;       // steps after which all of them catch up
};

// The costs of one step of this worker, averaged over its slices of some global batches, without
// exchanges with other workers.
std::vector<PhaseCost> CostsOfStep(ModelState& state, std::span<const Batch> slices,
                                   const MovedRows& moved = {});

// At these limits. Different kinds of work in a phase are assumed not to overlap.
double LeastSeconds(const PhaseCost& cost, const MachineLimits& limits);

}  // namespace renzan
