#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kSumThreads = 1024, kSumWarps = kSumThreads / 32;

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
  return make_uint4(WhereActive<T>(activations.x, words.x), WhereActive<T>(activations.y, words.y),
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

template <class T>
__device__ void Unpack(const uint4& words, float (&values)[kValuesOf16Bytes<T>]) {
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
  constexpr int kOfWord = kValuesOf16Bytes<T> / 4;
#pragma unroll
  for (int c = 0; c < kValuesOf16Bytes<T>; ++c)
    values[c] = ValueOfWord<T>(word[c / kOfWord], c % kOfWord);
}

__device__ uint4 Words(const void* from) { return *static_cast<const uint4*>(from); }

// What is summed: 16 bytes at a time, which Load() reads, and Finish() changes, stores and returns.
template <class T>
struct PlainColumns {
  static constexpr int kRowsAtOnce = 4;  // loads in flight
  const T* dy;
  struct Operands {
    uint4 dy;
  };
  __device__ Operands Load(int64_t at) const { return {Words(dy + at)}; }
  __device__ uint4 Finish(int64_t, const Operands& operands) const { return operands.dy; }
};

template <class T>
struct MaskedColumns {
  static constexpr int kRowsAtOnce = 4;
  const T* activations;
  T* dy;
  struct Operands {
    uint4 activations, dy;
  };
  __device__ Operands Load(int64_t at) const { return {Words(activations + at), Words(dy + at)}; }
  __device__ uint4 Finish(int64_t at, const Operands& operands) const {
    const uint4 masked = WhereActive<T>(operands.activations, operands.dy);
    *reinterpret_cast<uint4*>(dy + at) = masked;
    return masked;
  }
};

// Of a cross layer: d_crossed, which is summed, and d_x0.
template <class T, bool kAccumulate>
struct CrossColumns {
  static constexpr int kRowsAtOnce = 2;
  const T *dy, *x0, *crossed;
  T *d_crossed, *d_x0;
  struct Operands {
    uint4 dy, x0, crossed, d_x0;
  };
  __device__ Operands Load(int64_t at) const {
    return {Words(dy + at), Words(x0 + at), Words(crossed + at),
            kAccumulate ? Words(d_x0 + at) : uint4{}};
  }
  __device__ uint4 Finish(int64_t at, const Operands& operands) const {
    constexpr int kWidth = kValuesOf16Bytes<T>;
    float d[kWidth], a[kWidth], b[kWidth], sum[kWidth];
    Unpack<T>(operands.dy, d);
    Unpack<T>(operands.x0, a);
    Unpack<T>(operands.crossed, b);
    Unpack<T>(operands.d_x0, sum);  // zeros if there is nothing to add to
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      a[i] = d[i] * a[i];
      sum[i] = d[i] * b[i] + sum[i];
    }
    StoreValues(sum, d_x0 + at);
    StoreValues(a, d_crossed + at);
    return Words(d_crossed + at);
  }
};

// A block has kLanes · 16 bytes of the columns of all rows of virtual worker blockIdx.y: kLanes
// threads share a row.
template <class T, int kLanes, class Columns>
__global__ void __launch_bounds__(kSumThreads)
    SumColumnsKernel(int64_t rows, int64_t columns, Columns operation, float* d_bias,
                     int64_t d_bias_stride) {
  constexpr int kWidth = kValuesOf16Bytes<T>, kRowLanes = kSumThreads / kLanes;
  constexpr int kRowsAtOnce = Columns::kRowsAtOnce;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * (kLanes * kWidth);
  const int64_t column = first_column + static_cast<int>(threadIdx.x) % kLanes * kWidth;
  const int first_row = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t step = kRowLanes * columns;  // between the rows of a thread
  int64_t at = (blockIdx.y * rows + first_row) * columns + column;
  float sum[kWidth] = {};
  for (int64_t r = column < columns ? first_row : rows; r < rows;
       r += kRowsAtOnce * kRowLanes, at += kRowsAtOnce * step) {
    typename Columns::Operands operands[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (r + i * kRowLanes < rows) operands[i] = operation.Load(at + i * step);
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (r + i * kRowLanes < rows) AddValues<T>(operation.Finish(at + i * step, operands[i]), sum);
  }
  const float total = SumOverThreads<kLanes>(sum);
  const int64_t own_column = first_column + threadIdx.x;
  if (threadIdx.x < kLanes * kWidth && own_column < columns)
    d_bias[blockIdx.y * d_bias_stride + own_column] = total;
}

// The fewer threads share a row, the more rows are summed at the same time, by more blocks. Depends
// on the columns only, as the order of the sum does.
template <class T, class Columns>
void SumColumns(const MatrixShape& shape, const Columns& operation, float* d_bias,
                int64_t d_bias_stride, cudaStream_t stream) {
  const auto launch = [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    constexpr int64_t kColumns = kLanes * kValuesOf16Bytes<T>;
    const dim3 blocks(static_cast<unsigned>((shape.columns + kColumns - 1) / kColumns),
                      static_cast<unsigned>(shape.batches));
    SumColumnsKernel<T, kLanes><<<blocks, kSumThreads, 0, stream>>>(
        shape.rows, shape.columns, operation, d_bias, d_bias_stride);
  };
  constexpr int64_t kWide = 128 * kValuesOf16Bytes<T>;
  if (shape.columns >= kWide) {
    launch(std::integral_constant<int, 4>());
  } else if (shape.columns >= kWide / 4) {
    launch(std::integral_constant<int, 2>());
  } else {
    launch(std::integral_constant<int, 1>());
  }
}

}  // namespace

void MaskAndSumColumns(const MatrixShape& shape, const void* activations, void* dy, float* d_bias,
                       int64_t d_bias_stride, cudaStream_t stream) {
  if (shape.columns == 0 || shape.batches == 0) return;
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    T* const gradient = static_cast<T*>(dy);
    if (activations != nullptr) {
      const MaskedColumns<T> masked = {static_cast<const T*>(activations), gradient};
      SumColumns<T>(shape, masked, d_bias, d_bias_stride, stream);
    } else {
      SumColumns<T>(shape, PlainColumns<T>{gradient}, d_bias, d_bias_stride, stream);
    }
  });
  CheckLaunch("the gradient of a bias");
}

void CrossBackward(const MatrixShape& shape, const void* dy, const void* x0, const void* crossed,
                   bool accumulate, void* d_crossed, void* d_x0, float* d_bias,
                   int64_t d_bias_stride, cudaStream_t stream) {
  if (shape.columns == 0 || shape.batches == 0) return;
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&](auto accumulates) {
      const CrossColumns<T, decltype(accumulates)::value> columns = {
          static_cast<const T*>(dy), static_cast<const T*>(x0), static_cast<const T*>(crossed),
          static_cast<T*>(d_crossed), static_cast<T*>(d_x0)};
      SumColumns<T>(shape, columns, d_bias, d_bias_stride, stream);
    };
    if (accumulate) {
      launch(std::true_type());
    } else {
      launch(std::false_type());
    }
  });
  CheckLaunch("the gradient of a cross layer");
}

}  // namespace renzan::cuda
