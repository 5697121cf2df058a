#pragma once

// One optimizer step for rows whose gradients are in registers or on their way, in device code.
// Internal header of the sparse update.

#include <cstdint>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_values.cuh"

namespace renzan::cuda {

struct UpdateArguments {
  const SparseStepOnDevice* step;
  const DeviceTable* tables;
  const int32_t* offsets;
  uint32_t samples, samples_of_worker, workers;
  uint32_t stride;  // of d_features, in values
  LookupsByRow by_row;
  const void* d_features;
  uint32_t* touched;
  int32_t* finite;
  uint32_t rows_of_warp;  // whose positions its lanes hold; at most kWarp
  float* leaves;          // the sums of rows with many lookups
};

// A row of a table, for the lanes of a warp that share it.
struct TableRow {
  bool there;  // otherwise these lanes have no row now
  float* weights;
  float* state;
};

// Lanes that share a row of `dim` columns, for sums of squares: at least four, for a chunk.
inline __device__ int LanesOfStep(int dim) { return max(4, LanesOfRow(dim)); }

// Row `row` (first_row + row) of a table.
template <SparseOptimizerType kType>
__device__ TableRow RowOfTable(const DeviceTable& table, uint32_t row, bool there) {
  const int64_t index = row - static_cast<uint32_t>(table.first_row);
  const int state_width = kType == SparseOptimizerType::kSgd       ? 0
                          : kType == SparseOptimizerType::kAdagrad ? table.dim
                                                                   : 1;
  return {there, table.weights + index * table.dim, table.state + index * state_width};
}

// Sums of 0 · x: zero as long as all x were finite.
inline __device__ float AddFinite(float sum, float x) { return __fmaf_rn(x, 0.0f, sum); }
inline __device__ float AddFinite(float sum, float4 x) {
  return AddFinite(AddFinite(AddFinite(AddFinite(sum, x.x), x.y), x.z), x.w);
}

// The factor of a pooled row's gradient; `bag` is its index in `offsets`.
inline __device__ float MeanFactor(const int32_t* offsets, uint32_t bag) {
  const int32_t length = __ldg(offsets + bag + 1) - __ldg(offsets + bag);
  return length > 1 ? __fdiv_rn(1.0f, static_cast<float>(length)) : 1.0f;
}

// total + Σ g² in chunks of 16 columns (SumOfSquaresInChunks), for each lane's group. Four lanes
// hold a chunk: columns i and i + 8 are two lanes apart, i and i + 4 one.
template <int kVectors>
__device__ float AddSquares(const float4 (&g)[kVectors], int lanes, float total) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const auto add_other = [](float4 x, int distance) {
      return Add(x, make_float4(__shfl_xor_sync(kAllLanes, x.x, distance),
                                __shfl_xor_sync(kAllLanes, x.y, distance),
                                __shfl_xor_sync(kAllLanes, x.z, distance),
                                __shfl_xor_sync(kAllLanes, x.w, distance)));
    };
    const float4 x = add_other(add_other(Multiply(g[v], g[v]), 2), 1);
    const float chunk = __fadd_rn(__fadd_rn(x.x, x.z), __fadd_rn(x.y, x.w));
    for (int first = 0; first < lanes; first += 4)
      total = __fadd_rn(total, __shfl_sync(kAllLanes, chunk, first, lanes));
  }
  return total;
}

// w - rate·g
inline __device__ float4 Descend(float4 w, float rate, float4 g) {
  return make_float4(__fsub_rn(w.x, __fmul_rn(rate, g.x)), __fsub_rn(w.y, __fmul_rn(rate, g.y)),
                     __fsub_rn(w.z, __fmul_rn(rate, g.z)), __fsub_rn(w.w, __fmul_rn(rate, g.w)));
}

// w - lr·g / (√s + ε)
inline __device__ float4 DescendByState(float4 w, const SparseStepOnDevice& step, float4 g,
                                        float4 s) {
  const auto one = [&](float w, float g, float s) {
    return __fsub_rn(w, __fdiv_rn(__fmul_rn(step.lr, g), __fadd_rn(__fsqrt_rn(s), step.epsilon)));
  };
  return make_float4(one(w.x, g.x, s.x), one(w.y, g.y, s.y), one(w.z, g.z, s.z),
                     one(w.w, g.w, s.w));
}

// A lane's columns of its row: four each, or none.
template <int kVectors>
struct LaneColumns {
  int column[kVectors];
  bool there[kVectors];
};

// Prefetches into L2: the row need not occupy registers until the gradient is summed.
inline __device__ void Prefetch(const void* row) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(row));
}

// One step for kRows rows per group of `lanes` lanes, executed by all lanes of a warp; all rows
// have `dim` columns. Calls gradient.Load(columns, there, g) and then gradient.Finish(g) for
// kVectors · 4 · lanes columns at a time; for row-wise Adagrad, rows with more columns than that
// take two passes. Returns a sum of AddFinite().
template <SparseOptimizerType kType, int kVectors, int kRows, class Gradient>
__device__ float StepRows(const SparseStepOnDevice& step, int dim, int lanes,
                          const TableRow (&rows)[kRows], const Gradient (&gradients)[kRows]) {
  constexpr bool kAdagrad = kType == SparseOptimizerType::kAdagrad;
  constexpr bool kRowWise = kType == SparseOptimizerType::kRowWiseAdagrad;
  const int lane = threadIdx.x & (lanes - 1), tile = 4 * kVectors * lanes;
  const auto more = [&](int first) { return kVectors > 1 && first < dim; };
  LaneColumns<kVectors> columns = {};
  float4 w[kRows][kVectors], g[kRows][kVectors], s[kRows][kVectors];
  const auto load_rows = [&] {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const auto values = [&](const float* of_row, int v) {
        const float* from = of_row + columns.column[v];
        return rows[r].there && columns.there[v] ? __ldcg(reinterpret_cast<const float4*>(from))
                                                 : Zeros();
      };
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        w[r][v] = values(rows[r].weights, v);
        if constexpr (kAdagrad) s[r][v] = values(rows[r].state, v);
      }
    }
  };
  const auto load = [&](int first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      columns.column[v] = first + 4 * (v * lanes + lane);
      columns.there[v] = columns.column[v] < dim;
    }
    if constexpr (Gradient::kOfSeveral) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
          if (!rows[r].there || !columns.there[v]) continue;
          Prefetch(rows[r].weights + columns.column[v]);
          if constexpr (kAdagrad) Prefetch(rows[r].state + columns.column[v]);
        }
      }
    } else {
      load_rows();
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) gradients[r].Load(columns, rows[r].there, g[r]);
    if constexpr (Gradient::kOfSeveral) load_rows();
#pragma unroll
    for (int r = 0; r < kRows; ++r) gradients[r].Finish(g[r]);
    if (step.l2 == 0) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int v = 0; v < kVectors; ++v) g[r][v] = Add(g[r][v], Scale(step.l2, w[r][v]));
  };

  float rate[kRows], finite = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) rate[r] = step.lr;
  if constexpr (kRowWise) {
    float state[kRows], total[kRows] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) state[r] = rows[r].there ? __ldcg(rows[r].state) : 0.0f;
    int first = 0;
    do {
      load(first);
#pragma unroll
      for (int r = 0; r < kRows; ++r) total[r] = AddSquares(g[r], lanes, total[r]);
      first += tile;
    } while (more(first));
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      state[r] = __fadd_rn(state[r], __fdiv_rn(total[r], static_cast<float>(dim)));
      rate[r] = __fdiv_rn(step.lr, __fadd_rn(__fsqrt_rn(state[r]), step.epsilon));
      finite = AddFinite(finite, state[r]);
      if (rows[r].there && lane == 0) *rows[r].state = state[r];
    }
  }
  int first = 0;
  do {
    if (!kRowWise || more(tile)) load(first);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (!rows[r].there || !columns.there[v]) continue;
        float4& weight = w[r][v];
        if (step.kept != 1) weight = Scale(step.kept, weight);
        if constexpr (kAdagrad) {
          float4& state = s[r][v];
          state = Add(state, Multiply(g[r][v], g[r][v]));
          weight = DescendByState(weight, step, g[r][v], state);
          *reinterpret_cast<float4*>(rows[r].state + columns.column[v]) = state;
          finite = AddFinite(finite, state);
        } else {
          weight = Descend(weight, rate[r], g[r][v]);
        }
        *reinterpret_cast<float4*>(rows[r].weights + columns.column[v]) = weight;
        finite = AddFinite(finite, weight);
      }
    }
    first += tile;
  } while (more(first));
  return finite;
}

// All threads that write, write the same value.
inline __device__ void ReportFinite(float sum, int32_t* finite) {
  if (sum != 0) *finite = 0;  // true for NaN, too
}

}  // namespace renzan::cuda
