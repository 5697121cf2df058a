#pragma once

// What surrounds the matrix products on the device. Matrices are row-major. "Values" have the given
// precision; all arithmetic is in float32, rounded once. Sums have a fixed order that does not
// depend on how many virtual workers are on this device. Launches only; pointers are to device
// memory.

#include <cuda_runtime.h>

#include <cstdint>

#include "renzan/cuda/memory.cuh"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {

// A matrix with `rows` rows for each of `batches` virtual workers, one after another.
struct MatrixShape {
  int batches = 1;
  int64_t rows = 0;     // per virtual worker
  int64_t columns = 0;  // also the stride; a multiple of 8
  Precision precision = Precision::kFloat32;
};

// Memory for the sums of columns of matrices no larger than `widest`, for one launch after another.
class ColumnSums {
 public:
  struct Places {
    float* chunks;      // [virtual workers, chunks of rows, columns]
    uint32_t* arrived;  // [virtual workers, blocks of columns] chunks summed so far; zeros
  };
  explicit ColumnSums(const MatrixShape& widest);
  Places places() const { return {chunks_.as<float>(), arrived_.as<uint32_t>()}; }

 private:
  DeviceMemory chunks_, arrived_;
};

// dy = activations > 0 ? scale · dy : 0, if `activations` is not null. Then d_bias[v, c] = Σ dy[r,
// c] over the rows r of virtual worker v; d_bias [batches, columns] is float32, with
// `d_bias_stride` floats from one virtual worker to the next.
void MaskAndSumColumns(const MatrixShape& shape, const void* activations, float scale, void* dy,
                       const ColumnSums& scratch, float* d_bias, int64_t d_bias_stride,
                       cudaStream_t stream);

// Copies the first `columns` of each row between matrices of different strides (values of
// `precision`).
void CopyColumns(int64_t rows, int64_t columns, const void* from, int64_t from_stride, void* to,
                 int64_t to_stride, Precision precision, cudaStream_t stream);

// to[r, c] = from[r, c] rounded to the precision, for c < columns; zeros up to `to_stride`.
void ConvertRows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, void* to,
                 int64_t to_stride, Precision precision, cudaStream_t stream);

// DCN v2's cross layer, over n values: out = x0 · crossed + x.
void CrossForward(int64_t n, Precision precision, const void* x0, const void* crossed,
                  const void* x, void* out, cudaStream_t stream);
// Backward, from dy: d_crossed = dy · x0; d_x0 = dy · crossed, plus d_x0 if `accumulate`, plus dy
// if `residual`; and d_bias, the sums of d_crossed's columns as in MaskAndSumColumns.
struct CrossGradient {
  bool accumulate = false, residual = false;
};
void CrossBackward(const MatrixShape& shape, const void* dy, const void* x0, const void* crossed,
                   CrossGradient of, void* d_crossed, void* d_x0, const ColumnSums& scratch,
                   float* d_bias, int64_t d_bias_stride, cudaStream_t stream);

// The gradient of the mean binary cross-entropy (renzan/model/loss.h). The logits are column 0 of
// `output` [samples, stride], in float32; its other columns are ignored. Column 0 of d_output
// [samples, stride], values of `precision`, becomes (sigmoid(x) - y) / global_batch, and the others
// zero. `logits` [samples] receives a copy.
void LossGradient(int64_t samples, int64_t stride, const float* output, const float* labels,
                  int64_t global_batch, Precision precision, float* logits, void* d_output,
                  cudaStream_t stream);

// A parameter: in the flat array (ParameterLayout), a matrix [rows, columns] at `offset`; on the
// device, at `padded_offset` with rows of `stride` >= columns values.
struct ParameterPlace {
  int64_t offset = 0, rows = 0, columns = 0, padded_offset = 0, stride = 0;
};

// weights[padded_offset + r·stride + c] = flat[offset + r·columns + c], rounded to the precision.
// Padding is left unchanged. `places` [num_places] is in device memory; `largest` is the most
// values of any place.
void PackParameters(const ParameterPlace* places, int num_places, int64_t largest,
                    const float* flat, Precision precision, void* weights, cudaStream_t stream);

// flat[offset + r·columns + c] = the sum over the `batches` (a power of two, at most 1024)
// gradients of gradients[v · batch_stride + padded_offset + r·stride + c], float32, by the balanced
// binary tree over v: ((0 + 1) + (2 + 3)) + ...
void SumGradients(const ParameterPlace* places, int num_places, int64_t largest, int batches,
                  const float* gradients, int64_t batch_stride, float* flat, cudaStream_t stream);

}  // namespace renzan::cuda
