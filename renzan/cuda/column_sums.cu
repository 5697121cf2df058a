#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kSumThreads = 256;
constexpr int64_t kRowsOfChunk = 256;

// A word holds a float32, or two bfloat16 with the first one in its low half.
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

template <class T>
__device__ void Unpack(const uint4& words, float (&values)[kValuesOf16Bytes<T>]) {
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
  constexpr int kOfWord = kValuesOf16Bytes<T> / 4;
#pragma unroll
  for (int c = 0; c < kValuesOf16Bytes<T>; ++c)
    values[c] = ValueOfWord<T>(word[c / kOfWord], c % kOfWord);
}

template <class T>
__device__ uint4 Packed(const float (&values)[kValuesOf16Bytes<T>]) {
  ValueGroup<T, kValuesOf16Bytes<T>> rounded;
#pragma unroll
  for (int i = 0; i < kValuesOf16Bytes<T>; ++i) rounded.at[i] = Rounded<T>(values[i]);
  return __builtin_bit_cast(uint4, rounded);
}

__device__ uint4 Words(const void* from) { return *static_cast<const uint4*>(from); }

// Operations whose results are summed, 16 bytes at a time: Load() reads operands; Finish()
// computes, stores and returns the values to sum.
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
  float scale;
  T* dy;
  struct Operands {
    uint4 activations, dy;
  };
  __device__ Operands Load(int64_t at) const { return {Words(activations + at), Words(dy + at)}; }
  __device__ uint4 Finish(int64_t at, const Operands& operands) const {
    uint4 masked = WhereActive<T>(operands.activations, operands.dy);
    if (scale != 1.0f) {
      float values[kValuesOf16Bytes<T>];
      Unpack<T>(masked, values);
#pragma unroll
      for (float& value : values) value *= scale;
      masked = Packed<T>(values);
    }
    *reinterpret_cast<uint4*>(dy + at) = masked;
    return masked;
  }
};

// For a cross layer: d_crossed, which is summed, and d_x0.
template <class T, bool kAccumulate, bool kResidual>
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
      if (kResidual) sum[i] += d[i];
    }
    StoreValues(sum, d_x0 + at);
    const uint4 words = Packed<T>(a);
    *reinterpret_cast<uint4*>(d_crossed + at) = words;
    return words;
  }
};

// Block (x, y, z) handles kLanes · 16 bytes of the columns, in chunk y of the rows of virtual
// worker z. kLanes threads share a row; the threads' sums are added in order.
template <class T, int kLanes, class Columns>
__global__ void __launch_bounds__(kSumThreads)
    SumColumnsKernel(int64_t rows, int64_t columns, Columns operation, ColumnSums::Places scratch,
                     float* d_bias, int64_t d_bias_stride) {
  constexpr int kWidth = kValuesOf16Bytes<T>, kRowLanes = kSumThreads / kLanes;
  constexpr int kRowsAtOnce = Columns::kRowsAtOnce;
  const int row_lane = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kLanes + lane) * kWidth;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kRowsOfChunk;
  const int64_t end = min(rows, first + kRowsOfChunk);
  const int64_t step = kRowLanes * columns;  // between the rows of one thread
  int64_t at = (blockIdx.z * rows + first + row_lane) * columns + column;
  float sum[kWidth] = {};
  for (int64_t r = column < columns ? first + row_lane : end; r < end;
       r += kRowsAtOnce * kRowLanes, at += kRowsAtOnce * step) {
    typename Columns::Operands operands[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (r + i * kRowLanes < end) operands[i] = operation.Load(at + i * step);
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (r + i * kRowLanes < end) AddValues<T>(operation.Finish(at + i * step, operands[i]), sum);
  }
  constexpr int kColumns = kLanes * kWidth;
  __shared__ float of_row_lane[kRowLanes][kColumns + 1];
#pragma unroll
  for (int c = 0; c < kWidth; ++c) of_row_lane[row_lane][lane * kWidth + c] = sum[c];
  __syncthreads();
  // The last block to arrive adds, in order, what all blocks have stored for the virtual worker's
  // columns.
  float* const of_worker = scratch.chunks + blockIdx.z * int64_t{gridDim.y} * columns;
  for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += kSumThreads) {
    const int64_t own = static_cast<int64_t>(blockIdx.x) * kColumns + c;
    if (own >= columns) continue;
    float total = 0.0f;
#pragma unroll
    for (int r = 0; r < kRowLanes; ++r) total += of_row_lane[r][c];
    of_worker[blockIdx.y * columns + own] = total;
  }
  __threadfence();
  __syncthreads();
  __shared__ bool is_last;
  uint32_t* const arrived = scratch.arrived + blockIdx.z * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) is_last = atomicAdd(arrived, 1) == gridDim.y - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += kSumThreads) {
    const int64_t own = static_cast<int64_t>(blockIdx.x) * kColumns + c;
    if (own >= columns) continue;
    float total = 0.0f;
    for (unsigned i = 0; i < gridDim.y; ++i) total += __ldcg(of_worker + i * columns + own);
    d_bias[blockIdx.z * d_bias_stride + own] = total;
  }
  if (threadIdx.x == 0) *arrived = 0;  // for the next launch
}

int64_t Chunks(const MatrixShape& shape) { return (shape.rows + kRowsOfChunk - 1) / kRowsOfChunk; }

// At most how many blocks share the columns of a virtual worker, for any number of columns up to
// `columns`.
int64_t MostBlocks(int64_t columns) { return columns / 8 + 1; }

// The order of a sum depends only on a virtual worker's rows and columns.
template <class T, class Columns>
void SumColumns(const MatrixShape& shape, const Columns& operation,
                const ColumnSums::Places& scratch, float* d_bias, int64_t d_bias_stride,
                cudaStream_t stream) {
  const unsigned chunks = static_cast<unsigned>(Chunks(shape));
  const unsigned batches = static_cast<unsigned>(shape.batches);
  const auto launch = [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    constexpr int64_t kColumns = kLanes * kValuesOf16Bytes<T>;
    const dim3 blocks(static_cast<unsigned>((shape.columns + kColumns - 1) / kColumns), chunks,
                      batches);
    SumColumnsKernel<T, kLanes><<<blocks, kSumThreads, 0, stream>>>(
        shape.rows, shape.columns, operation, scratch, d_bias, d_bias_stride);
  };
  if (shape.columns >= 16 * kValuesOf16Bytes<T>) {
    launch(std::integral_constant<int, 16>());
  } else {
    launch(std::integral_constant<int, 2>());
  }
}

}  // namespace

ColumnSums::ColumnSums(const MatrixShape& widest)
    : chunks_(static_cast<size_t>(widest.batches * Chunks(widest) * widest.columns) *
              sizeof(float)),
      arrived_(static_cast<size_t>(widest.batches * MostBlocks(widest.columns)) *
               sizeof(uint32_t)) {}

void MaskAndSumColumns(const MatrixShape& shape, const void* activations, float scale, void* dy,
                       const ColumnSums& scratch, float* d_bias, int64_t d_bias_stride,
                       cudaStream_t stream) {
  if (shape.columns == 0 || shape.batches == 0) return;
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    T* const gradient = static_cast<T*>(dy);
    if (activations != nullptr) {
      const MaskedColumns<T> masked = {static_cast<const T*>(activations), scale, gradient};
      SumColumns<T>(shape, masked, scratch.places(), d_bias, d_bias_stride, stream);
    } else {
      SumColumns<T>(shape, PlainColumns<T>{gradient}, scratch.places(), d_bias, d_bias_stride,
                    stream);
    }
  });
  CheckLaunch("the gradient of a bias");
}

void CrossBackward(const MatrixShape& shape, const void* dy, const void* x0, const void* crossed,
                   CrossGradient of, void* d_crossed, void* d_x0, const ColumnSums& scratch,
                   float* d_bias, int64_t d_bias_stride, cudaStream_t stream) {
  if (shape.columns == 0 || shape.batches == 0) return;
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&](auto accumulates, auto residual) {
      const CrossColumns<T, decltype(accumulates)::value, decltype(residual)::value> columns = {
          static_cast<const T*>(dy), static_cast<const T*>(x0), static_cast<const T*>(crossed),
          static_cast<T*>(d_crossed), static_cast<T*>(d_x0)};
      SumColumns<T>(shape, columns, scratch.places(), d_bias, d_bias_stride, stream);
    };
    const auto with_residual = [&](auto accumulates) {
      if (of.residual) {
        launch(accumulates, std::true_type());
      } else {
        launch(accumulates, std::false_type());
      }
    };
    if (of.accumulate) {
      with_residual(std::true_type());
    } else {
      with_residual(std::false_type());
    }
  });
  CheckLaunch("the gradient of a cross layer");
}

}  // namespace renzan::cuda
