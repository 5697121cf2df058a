#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kSumThreads = 1024, kSumWarps = kSumThreads / 32;
constexpr int kRowsAtOnce = 4;  // loads in flight

// A word holds a float32 or two bfloat16, the first one in its low half.
template <class T>
__device__ float ValueOfWord(uint32_t word, int index) {
  if constexpr (std::is_same_v<T, float>) {
    return __uint_as_float(word);
  } else {
    return __uint_as_float(index == 0 ? word << 16 : word & 0xFFFF0000u);
  }
}

template <class T>
__device__ uint32_t WhereActive(uint32_t activations, uint32_t word) {
  if constexpr (std::is_same_v<T, float>) {
    return ValueOfWord<T>(activations, 0) > 0.0f ? word : 0;
  } else {
    return (ValueOfWord<T>(activations, 0) > 0.0f ? word & 0xFFFFu : 0) |
           (ValueOfWord<T>(activations, 1) > 0.0f ? word & 0xFFFF0000u : 0);
  }
}

template <class T>
__device__ uint4 WhereActive(const uint4& activations, const uint4& words) {
  return make_uint4(
      WhereActive<T>(activations.x, words.x), WhereActive<T>(activations.y, words.y),
      WhereActive<T>(activations.z, words.z), WhereActive<T>(activations.w, words.w));
}

template <class T, int kWidth>
__device__ void AddValues(const uint4& words, float (&sum)[kWidth]) {
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
  constexpr int kOfWord = kWidth / 4;
#pragma unroll
  for (int c = 0; c < kWidth; ++c) sum[c] += ValueOfWord<T>(word[c / kOfWord], c % kOfWord);
}

// Sums over the threads with the same thread index modulo kLanes, in a fixed order: over a warp by
// a butterfly, then over the warps in order. Thread t gets column t.
template <int kLanes, int kWidth>
__device__ float SumOverThreads(float (&sum)[kWidth]) {
  constexpr int kColumns = kLanes * kWidth;
  __shared__ float of_warp[kSumWarps][kColumns];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int c = 0; c < kWidth; ++c) {
#pragma unroll
    for (int distance = kLanes; distance < 32; distance *= 2)
      sum[c] += __shfl_xor_sync(0xFFFFFFFFu, sum[c], distance);
    if (lane < kLanes) of_warp[warp][lane * kWidth + c] = sum[c];
  }
  __syncthreads();
  float total = 0.0f;
  if (threadIdx.x < kColumns)
    for (int w = 0; w < kSumWarps; ++w) total += of_warp[w][threadIdx.x];
  return total;
}

// A block has kLanes · 16 bytes of the columns of all rows of virtual worker blockIdx.y: kLanes
// threads share a row.
template <class T, int kLanes, bool kMask>
__global__ void __launch_bounds__(kSumThreads)
    MaskAndSumColumnsKernel(int64_t rows, int64_t columns, const T* activations, T* dy,
                            float* d_bias, int64_t d_bias_stride) {
  constexpr int kWidth = kValuesOf16Bytes<T>, kRowLanes = kSumThreads / kLanes;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * (kLanes * kWidth);
  const int64_t column = first_column + static_cast<int>(threadIdx.x) % kLanes * kWidth;
  const int first_row = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t step = kRowLanes * columns;  // between the rows of a thread
  int64_t at = (blockIdx.y * rows + first_row) * columns + column;
  float sum[kWidth] = {};
  for (int64_t r = column < columns ? first_row : rows; r < rows;
       r += kRowsAtOnce * kRowLanes, at += kRowsAtOnce * step) {
    uint4 gradient[kRowsAtOnce] = {}, activation[kRowsAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (r + i * kRowLanes >= rows) continue;
      gradient[i] = *reinterpret_cast<const uint4*>(dy + at + i * step);
      if constexpr (kMask)
        activation[i] = *reinterpret_cast<const uint4*>(activations + at + i * step);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (r + i * kRowLanes >= rows) continue;
      if constexpr (kMask) {
        gradient[i] = WhereActive<T>(activation[i], gradient[i]);
        *reinterpret_cast<uint4*>(dy + at + i * step) = gradient[i];
      }
      AddValues<T>(gradient[i], sum);
    }
  }
  const float total = SumOverThreads<kLanes>(sum);
  const int64_t own_column = first_column + threadIdx.x;
  if (threadIdx.x < kLanes * kWidth && own_column < columns)
    d_bias[blockIdx.y * d_bias_stride + own_column] = total;
}

// The fewer threads share a row, the more rows are summed at the same time. Depends on the columns
// only, as the order of the sum does.
template <class T, int kLanes>
void LaunchMaskAndSumColumns(const MatrixShape& shape, const void* activations, void* dy,
                             float* d_bias, int64_t d_bias_stride, cudaStream_t stream) {
  constexpr int64_t kColumns = kLanes * kValuesOf16Bytes<T>;
  const dim3 blocks(static_cast<unsigned>((shape.columns + kColumns - 1) / kColumns),
                    static_cast<unsigned>(shape.batches));
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, kSumThreads, 0, stream>>>(shape.rows, shape.columns,
                                               static_cast<const T*>(activations),
                                               static_cast<T*>(dy), d_bias, d_bias_stride);
  };
  if (activations != nullptr) {
    launch(MaskAndSumColumnsKernel<T, kLanes, true>);
  } else {
    launch(MaskAndSumColumnsKernel<T, kLanes, false>);
  }
}

}  // namespace

void MaskAndSumColumns(const MatrixShape& shape, const void* activations, void* dy, float* d_bias,
                       int64_t d_bias_stride, cudaStream_t stream) {
  if (shape.columns == 0 || shape.batches == 0) return;
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    if (shape.columns >= 4 * kValuesOf16Bytes<T>) {
      LaunchMaskAndSumColumns<T, 4>(shape, activations, dy, d_bias, d_bias_stride, stream);
    } else {
      LaunchMaskAndSumColumns<T, 1>(shape, activations, dy, d_bias, d_bias_stride, stream);
    }
  });
  CheckLaunch("the gradient of a bias");
}

}  // namespace renzan::cuda
