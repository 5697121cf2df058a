#pragma once

// The update of rows whose lookups are divided among warps (LookupsByRow::many). Internal header of
// the sparse update.

#include "renzan/cuda/row_step.cuh"

namespace renzan::cuda {

void UpdateRowsOfMany(const UpdateArguments& arguments, SparseOptimizerType optimizer,
                      Precision precision, int multiprocessors, cudaStream_t stream);

}  // namespace renzan::cuda
