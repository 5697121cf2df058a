#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

// Blocks whose threads share rows along x and have different rows along y.
struct RowGrid {
  dim3 blocks, threads;

  // `units`: units of work per row.
  RowGrid(int64_t rows, int64_t units) {
    unsigned lanes = 1;
    while (lanes < 32 && lanes < units) lanes *= 2;
    threads = dim3(lanes, kStreamingThreads / lanes);
    blocks = dim3(StreamingBlocks(rows, threads.y));
  }
};

// Calls body(row, unit) for all rows and units, by the threads of a RowGrid.
template <class Body>
__device__ void ForRowUnits(int64_t rows, int64_t units, const Body& body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; r < rows; r += step)
    for (int64_t u = threadIdx.x; u < units; u += blockDim.x) body(r, u);
}

// Columns and strides are in units.
template <class Unit>
__global__ void __launch_bounds__(kStreamingThreads)
    CopyColumnsKernel(int64_t rows, int64_t columns, const Unit* from, int64_t from_stride,
                      Unit* to, int64_t to_stride) {
  ForRowUnits(rows, columns,
              [&](int64_t r, int64_t c) { to[r * to_stride + c] = from[r * from_stride + c]; });
}

template <class Unit>
void LaunchCopyColumns(int64_t rows, int64_t columns, const void* from, int64_t from_stride,
                       void* to, int64_t to_stride, int64_t values_of_unit, cudaStream_t stream) {
  const RowGrid grid(rows, columns / values_of_unit);
  CopyColumnsKernel<Unit><<<grid.blocks, grid.threads, 0, stream>>>(
      rows, columns / values_of_unit, static_cast<const Unit*>(from), from_stride / values_of_unit,
      static_cast<Unit*>(to), to_stride / values_of_unit);
}

template <class T>
__global__ void __launch_bounds__(kStreamingThreads)
    ConvertRowsKernel(int64_t rows, int64_t columns, const float* from, int64_t from_stride,
                      bool from_aligned, T* to, int64_t to_stride, bool to_aligned) {
  ForRowUnits(rows, (to_stride + 3) / 4, [&](int64_t r, int64_t unit) {
    const int64_t c = 4 * unit;
    float value[4];
    WithGroup<4>(from_aligned, columns - c,
                 [&](auto group) { LoadGroup(from + r * from_stride + c, group, value); });
    WithGroup<4>(to_aligned, to_stride - c,
                 [&](auto group) { StoreGroup(value, group, to + r * to_stride + c); });
  });
}

template <class T>
__global__ void __launch_bounds__(kStreamingThreads)
    CrossForwardKernel(int64_t n, bool aligned, const T* x0, const T* crossed, const T* x, T* out) {
  constexpr int kWidth = kValuesOf16Bytes<T>;
  ForGroups<kWidth>(n, aligned, [&](int64_t i, auto group) {
    float a[kWidth], b[kWidth], sum[kWidth];
    LoadGroup(x0 + i, group, a);
    LoadGroup(crossed + i, group, b);
    LoadGroup(x + i, group, sum);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum[j] = a[j] * b[j] + sum[j];
    StoreGroup(sum, group, out + i);
  });
}

__device__ float SigmoidOnDevice(float logit) {
  const float e = expf(-fabsf(logit));
  return (logit >= 0.0f ? 1.0f : e) / (1.0f + e);
}

// `scale`: 1 / global batch.
template <class T>
__global__ void __launch_bounds__(kStreamingThreads)
    LossGradientKernel(int64_t samples, int64_t stride, bool aligned, const float* output,
                       const float* labels, float scale, float* logits, T* d_output) {
  constexpr int kWidth = kValuesOf16Bytes<T>;
  ForRowUnits(samples, (stride + kWidth - 1) / kWidth, [&](int64_t s, int64_t unit) {
    float gradient[kWidth] = {};
    if (unit == 0) {
      const float logit = output[s * stride];
      logits[s] = logit;
      // A sample without a label has a NaN there.
      if (labels[s] == labels[s]) gradient[0] = (SigmoidOnDevice(logit) - labels[s]) * scale;
    }
    const int64_t c = unit * kWidth;
    WithGroup<kWidth>(aligned, stride - c,
                      [&](auto group) { StoreGroup(gradient, group, d_output + s * stride + c); });
  });
}

}  // namespace

void CopyColumns(int64_t rows, int64_t columns, const void* from, int64_t from_stride, void* to,
                 int64_t to_stride, Precision precision, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return;
  const int64_t width = precision == Precision::kFloat32 ? 4 : 8;
  if (AreAlignedTo16Bytes(from, to) && (columns | from_stride | to_stride) % width == 0) {
    LaunchCopyColumns<uint4>(rows, columns, from, from_stride, to, to_stride, width, stream);
  } else if (precision == Precision::kFloat32) {
    LaunchCopyColumns<uint32_t>(rows, columns, from, from_stride, to, to_stride, 1, stream);
  } else {
    LaunchCopyColumns<uint16_t>(rows, columns, from, from_stride, to, to_stride, 1, stream);
  }
  CheckLaunch("copying columns");
}

void ConvertRows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, void* to,
                 int64_t to_stride, Precision precision, cudaStream_t stream) {
  if (rows == 0 || to_stride == 0) return;
  const RowGrid grid(rows, (to_stride + 3) / 4);
  WithValueType(precision, [&](auto type) {
    using T = decltype(type);
    ConvertRowsKernel<T><<<grid.blocks, grid.threads, 0, stream>>>(
        rows, columns, from, from_stride, AreAlignedTo16Bytes(from) && from_stride % 4 == 0,
        static_cast<T*>(to), to_stride, AreAlignedTo16Bytes(to) && to_stride % 4 == 0);
  });
  CheckLaunch("rounding rows");
}

void CrossForward(int64_t n, Precision precision, const void* x0, const void* crossed,
                  const void* x, void* out, cudaStream_t stream) {
  if (n == 0) return;
  WithValueType(precision, [&](auto type) {
    using T = decltype(type);
    CrossForwardKernel<T><<<StreamingBlocks(n, kStreamingThreads * kValuesOf16Bytes<T>),
                            kStreamingThreads, 0, stream>>>(
        n, AreAlignedTo16Bytes(x0, crossed, x, out), static_cast<const T*>(x0),
        static_cast<const T*>(crossed), static_cast<const T*>(x), static_cast<T*>(out));
  });
  CheckLaunch("a cross layer");
}

void LossGradient(int64_t samples, int64_t stride, const float* output, const float* labels,
                  int64_t global_batch, Precision precision, float* logits, void* d_output,
                  cudaStream_t stream) {
  if (samples == 0) return;
  const float scale = 1.0f / static_cast<float>(global_batch);
  WithValueType(precision, [&](auto type) {
    using T = decltype(type);
    constexpr int64_t kWidth = kValuesOf16Bytes<T>;
    const RowGrid grid(samples, (stride + kWidth - 1) / kWidth);
    LossGradientKernel<T><<<grid.blocks, grid.threads, 0, stream>>>(
        samples, stride, AreAlignedTo16Bytes(d_output) && stride % kWidth == 0, output, labels,
        scale, logits, static_cast<T*>(d_output));
  });
  CheckLaunch("the loss's gradient");
}

}  // namespace renzan::cuda
