#pragma once

// The global norm of gradients, and clipping by it. Squares are summed in float64 in an order that
// depends on the number of terms only: within a chunk by 16 interleaved sums, over chunks by a
// balanced binary tree. So the norm is the same on any placement and with any instruction set.
// Thread-safe.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"

namespace renzan {

// Σ x², for what one thread does at once: a row, a chunk.
double SumOfSquares(const float* x, int64_t n);

// Σ x² over a long array, in chunks.
double SumOfSquares(ThreadPool& pool, std::span<const float> x);

// The terms' sum by a balanced binary tree; 0 without terms.
double TreeSum(std::vector<double> terms);

// What every gradient is to be multiplied with, so that their norm is at most `max_norm`:
// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. NaN where the norm is
// not finite.
float ClipFactor(double squared_norm, double max_norm);

}  // namespace renzan
