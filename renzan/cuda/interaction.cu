#include "renzan/cuda/interaction.cuh"
#include "renzan/cuda/interaction_tensor_cores.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

// One block per sample; one thread per 4 x 4 results, whose sums run over ascending indices with
// fused multiply-add. Operands that do not fit into shared memory pass through it in parts.

namespace renzan::cuda {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kSharedChunks = 3072;  // of 16 bytes: what any GPU provides by default

// Where a row of a staged matrix begins, in chunks of 4 values, such that the same column of rows
// 0, 4, 8, ... is in different banks.
__host__ __device__ constexpr int StagedRow(int row, int row_chunks) {
  return row * row_chunks + row / 4;
}

__device__ constexpr int LowerTriangle(int rows) { return rows * (rows - 1) / 2; }

template <class T>
__device__ void StageRows(const T* x, int stride, int rows, int row_chunks, float4* staged) {
  for (int c = static_cast<int>(threadIdx.x); c < rows * row_chunks;
       c += static_cast<int>(blockDim.x)) {
    const int row = c / row_chunks, column = c % row_chunks;
    float value[4];
    LoadValues(x + row * stride + 4 * column, value);
    staged[StagedRow(row, row_chunks) + column] =
        make_float4(value[0], value[1], value[2], value[3]);
  }
}

// Tile t of a lower triangle of tiles, including the diagonal, row by row.
struct PairTile {
  int row, column;

  __device__ explicit PairTile(int t) {
    row = static_cast<int>((sqrtf(8.0f * static_cast<float>(t) + 1.0f) - 1.0f) / 2.0f);
    while (row * (row + 1) / 2 > t) --row;
    while ((row + 1) * (row + 2) / 2 <= t) ++row;
    column = t - row * (row + 1) / 2;
  }
};

// sum[r][c] += <x_(4·row + r), x_(4·column + c)> over the staged columns. There are f rows.
__device__ void AddPairProducts(const float4* staged, int f, int row_chunks, PairTile tile,
                                float (&sum)[4][4]) {
  const float4 *a[4], *b[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a[i] = staged + StagedRow(min(4 * tile.row + i, f - 1), row_chunks);
    b[i] = staged + StagedRow(min(4 * tile.column + i, f - 1), row_chunks);
  }
  for (int k = 0; k < row_chunks; ++k) {
    float4 column[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c] = b[c][k];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float4 x = a[r][k];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        sum[r][c] = fmaf(x.x, column[c].x, sum[r][c]);
        sum[r][c] = fmaf(x.y, column[c].y, sum[r][c]);
        sum[r][c] = fmaf(x.z, column[c].z, sum[r][c]);
        sum[r][c] = fmaf(x.w, column[c].w, sum[r][c]);
      }
    }
  }
}

template <class T>
__device__ void StorePairProducts(const float (&sum)[4][4], int f, PairTile tile, T* pairs) {
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = 4 * tile.row + r;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int j = 4 * tile.column + c;
      if (j < i && i < f) pairs[LowerTriangle(i) + j] = Rounded<T>(sum[r][c]);
    }
  }
}

// `depth`: columns staged at a time, in chunks of 4.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    InteractionForwardKernel(int f, int dim, int64_t out_stride, int tiles, int depth,
                             const T* features, T* out) {
  extern __shared__ float4 forward_operands[];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const T* x = features + static_cast<int64_t>(blockIdx.x) * f * dim;
  T* row = out + static_cast<int64_t>(blockIdx.x) * out_stride;
  for (int first = 0; first < tiles; first += threads) {
    const PairTile tile(min(first + thread, tiles - 1));
    float sum[4][4] = {};
    for (int k = 0; k < dim / 4; k += depth) {
      const int row_chunks = min(depth, dim / 4 - k);
      __syncthreads();
      StageRows(x + 4 * k, dim, f, row_chunks, forward_operands);
      __syncthreads();
      AddPairProducts(forward_operands, f, row_chunks, tile, sum);
    }
    if (first + thread < tiles) StorePairProducts(sum, f, tile, row + dim);
  }
  for (int c = thread; c < dim; c += threads) row[c] = x[c];
  for (int64_t c = dim + LowerTriangle(f) + thread; c < out_stride; c += threads)
    row[c] = Rounded<T>(0.0f);
}

// Rows begin .. begin + rows of the symmetric matrix of the pairs' gradients, each of `row_chunks`
// chunks; zero on the diagonal and beyond the last vector.
template <class T>
__device__ void StagePairGradients(const T* pairs, int f, int begin, int rows, int row_chunks,
                                   float* staged) {
  const int width = 4 * row_chunks;
  for (int e = static_cast<int>(threadIdx.x); e < rows * width; e += static_cast<int>(blockDim.x)) {
    const int i = begin + e / width, j = e % width;
    const int high = max(i, j), low = min(i, j);
    staged[e] = low < high && high < f ? ToFloat(pairs[LowerTriangle(high) + low]) : 0.0f;
  }
}

// sum[r][c] += Σ_j gradient[j, r] · x[j, c] over the staged rows; the tile's chunks begin at
// `gradient` and `x`.
__device__ void AddGradientProducts(const float4* gradient, int gradient_chunks, const float4* x,
                                    int row_chunks, int rows, float (&sum)[4][4]) {
  for (int j = 0; j < rows; ++j) {
    const float4 g = gradient[j * gradient_chunks], v = x[StagedRow(j, row_chunks)];
    const float of_row[4] = {g.x, g.y, g.z, g.w}, of_column[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[r][c] = fmaf(of_row[r], of_column[c], sum[r][c]);
    }
  }
}

// `depth`: vectors staged at a time.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    InteractionBackwardKernel(int f, int dim, int64_t out_stride, int depth, const T* features,
                              const T* d_out, T* d_features) {
  extern __shared__ float4 backward_operands[];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int row_tiles = (f + 3) / 4, column_tiles = dim / 4, tiles = row_tiles * column_tiles;
  float4* const gradient = backward_operands + StagedRow(depth, column_tiles);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * f * dim;
  const T* x = features + begin;
  const T* row = d_out + static_cast<int64_t>(blockIdx.x) * out_stride;
  for (int first = 0; first < tiles; first += threads) {
    const int tile = min(first + thread, tiles - 1);
    const int row_tile = tile / column_tiles, column_tile = tile % column_tiles;
    float sum[4][4] = {};
    for (int j = 0; j < f; j += depth) {
      const int rows = min(depth, f - j);
      __syncthreads();
      StageRows(x + j * dim, dim, rows, column_tiles, backward_operands);
      StagePairGradients(row + dim, f, j, rows, row_tiles, reinterpret_cast<float*>(gradient));
      __syncthreads();
      AddGradientProducts(gradient + row_tile, row_tiles, backward_operands + column_tile,
                          column_tiles, rows, sum);
    }
    if (first + thread >= tiles) continue;
    if (row_tile == 0) {
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[0][c] += ToFloat(row[4 * column_tile + c]);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i = 4 * row_tile + r;
      if (i < f) StoreValues(sum[r], d_features + begin + i * dim + 4 * column_tile);
    }
  }
}

unsigned ThreadsFor(int tiles) {
  return static_cast<unsigned>(std::clamp((tiles + 31) / 32 * 32, 64, kMaxThreads));
}

void CheckDepth(int depth) {
  Check(depth > 0 ? cudaSuccess : cudaErrorInvalidValue, "the dot interaction of so many vectors");
}

}  // namespace

void InteractionForward(const InteractionShape& shape, const void* features, void* out,
                        cudaStream_t stream) {
  if (shape.samples == 0) return;
  if (FitsTensorCores(shape)) return InteractionForwardOnTensorCores(shape, features, out, stream);
  const int f = shape.vectors, chunks = shape.dim / 4;
  const int row_tiles = (f + 3) / 4, tiles = row_tiles * (row_tiles + 1) / 2;
  const int depth = std::min(chunks, (kSharedChunks - f / 4) / f);
  CheckDepth(depth);
  const size_t bytes = static_cast<size_t>(StagedRow(f, depth)) * sizeof(float4);
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    InteractionForwardKernel<T>
        <<<static_cast<unsigned>(shape.samples), ThreadsFor(tiles), bytes, stream>>>(
            f, shape.dim, shape.out_stride, tiles, depth, static_cast<const T*>(features),
            static_cast<T*>(out));
  });
  CheckLaunch("the dot interaction");
}

void InteractionBackward(const InteractionShape& shape, const void* features, const void* d_out,
                         void* d_features, cudaStream_t stream) {
  if (shape.samples == 0) return;
  if (FitsTensorCores(shape))
    return InteractionBackwardOnTensorCores(shape, features, d_out, d_features, stream);
  const int f = shape.vectors, chunks = shape.dim / 4, row_tiles = (f + 3) / 4;
  // For each vector: itself, its row of the pairs' gradients, and at most a chunk of padding.
  const int depth = std::min(f, kSharedChunks / (chunks + row_tiles + 1));
  CheckDepth(depth);
  const size_t bytes =
      static_cast<size_t>(StagedRow(depth, chunks) + depth * row_tiles) * sizeof(float4);
  WithValueType(shape.precision, [&](auto type) {
    using T = decltype(type);
    InteractionBackwardKernel<T>
        <<<static_cast<unsigned>(shape.samples), ThreadsFor(row_tiles * chunks), bytes, stream>>>(
            f, shape.dim, shape.out_stride, depth, static_cast<const T*>(features),
            static_cast<const T*>(d_out), static_cast<T*>(d_features));
  });
  CheckLaunch("the dot interaction's gradient");
}

}  // namespace renzan::cuda
