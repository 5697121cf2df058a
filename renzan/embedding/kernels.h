#pragma once

// The inner loops over embedding rows, vectorised for the run's instruction set. Products and sums
// are rounded separately and taken in a stated order, so every target gives the same bits.
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

// x[d] *= scale
void ScaleRow(float scale, int64_t dim, float* x);

// sum[d] += x[d]
void AddRow(const float* x, int64_t dim, float* sum);

// One optimizer step on one row with its summed gradient g [dim].
//   SGD:               w -= lr·g
//   Adagrad:           s[d] += g[d]²;          w[d] -= lr·g[d] / (√s[d] + ε)
//   row-wise Adagrad:  s += (1/dim)·Σ g²;      w[d] -= (lr / (√s + ε))·g[d]
// Σ g² is formed in chunks of 16 columns, each chunk summed by a balanced tree, the chunks in
// order: a row that is split by columns at multiples of 16 gives the same sum.
void SgdRow(float lr, const float* g, int64_t dim, float* w);
void AdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w);
void RowWiseAdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w);

}  // namespace renzan
