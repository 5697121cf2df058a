#pragma once

// The inner loops over embedding rows, vectorised for the run's instruction set. Products and sums
// are rounded separately and taken in a fixed order, so every target gives the same bits.
// Thread-safe.

#include <cstdint>
#include <span>

namespace renzan {

// A bag: out[d] = Σ over ids in bag order of weights[id, d]; zeros for an empty bag. `scale` then
// multiplies the sum unless it is 1 (mean pooling: 1 / length).
void PoolBag(const float* weights, int64_t dim, std::span<const int32_t> ids, float scale,
             float* out);

// One-hot lookups of consecutive samples: out[i, d] = weights[ids[i], d].
void GatherRows(const float* weights, int64_t dim, std::span<const int32_t> ids, float* out);

// sum[d] += x[d]
void AddRow(const float* x, int64_t dim, float* sum);

}  // namespace renzan
