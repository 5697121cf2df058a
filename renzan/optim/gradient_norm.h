#pragma once

// The global norm of gradients, and clipping by it. Squares are summed in float64, in an order that
// depends only on the number of terms: within a chunk in 16 interleaved sums, over chunks by a
// balanced binary tree. So the norm does not depend on placement or instruction set. Thread-safe.

#include <cstdint>
#include <span>

#include "renzan/base/thread_pool.h"

namespace renzan {

// Σ x² of a row or a chunk, computed by one thread.
double SumOfSquares(const float* x, int64_t n);

// Σ x² over a long array, in chunks.
double SumOfSquares(ThreadPool& pool, std::span<const float> x);

// The sum of the terms by a balanced binary tree; overwrites them. 0 if there are none.
double TreeSum(std::span<double> terms);

// The factor by which to multiply all gradients so that their norm is at most `max_norm`: min(1,
// max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. NaN if the norm is not finite.
float ClipFactor(double squared_norm, double max_norm);

}  // namespace renzan
