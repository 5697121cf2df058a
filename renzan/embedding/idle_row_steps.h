#pragma once

// The work of a step of the rows that no sample looks up, for the cost model (plan/).

#include "renzan/optim/sparse_optimizers.h"
#include "renzan/plan/idle_rows_cost.h"

namespace renzan {

IdleRowSteps IdleRowStepsOf(const SparseOptimizerOptions& options);

}  // namespace renzan
