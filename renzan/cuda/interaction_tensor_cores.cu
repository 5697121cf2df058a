#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include "renzan/cuda/interaction_tensor_cores.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/tensor_cores.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kMaxVectors = 32, kMaxDim = 256;
constexpr int kMaxPairs = kMaxVectors * (kMaxVectors - 1) / 2;
constexpr int kWarps = 4;  // per block

__host__ __device__ constexpr int PairsOf(int vectors) { return vectors * (vectors - 1) / 2; }

// Consecutive columns, two in each word.
__device__ void Unpack(const uint2& words, uint32_t (&to)[2]) {
  to[0] = words.x;
  to[1] = words.y;
}
__device__ void Unpack(const uint4& words, uint32_t (&to)[4]) {
  to[0] = words.x;
  to[1] = words.y;
  to[2] = words.z;
  to[3] = words.w;
}

// Adds the products of all pairs over 8·kWords columns to the lower triangle's tiles [16, 8]: two
// in the upper half of the rows, four in the lower half. The lane's 2·kWords columns begin at `x`,
// 2·kWords·member columns from the first. This permutes the terms of the sums, but alike in both
// operands.
template <int kWords>
__device__ void AddProducts(int f, int dim, int group, const __nv_bfloat16* x, float (&sum)[6][4]) {
  using Words = std::conditional_t<kWords == 4, uint4, uint2>;
  // Of vectors group, group + 8, ...; beyond the last vector, the last one again, for products that
  // nobody reads.
  Words words[4];
#pragma unroll
  for (int r = 0; r < 4; ++r)
    words[r] = *reinterpret_cast<const Words*>(x + min(group + 8 * r, f - 1) * dim);
  uint32_t row[4][kWords];
#pragma unroll
  for (int r = 0; r < 4; ++r) Unpack(words[r], row[r]);
#pragma unroll
  for (int w = 0; w < kWords; w += 2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t a[4] = {row[2 * half][w], row[2 * half + 1][w], row[2 * half][w + 1],
                             row[2 * half + 1][w + 1]};
#pragma unroll
      for (int n = 0; n < 2 * half + 2; ++n)
        AddTileProduct(a, row[n][w], row[n][w + 1], sum[2 * half + n]);
    }
  }
}

// Stores the lower triangle, row by row.
__device__ void StorePairs(const float (&sum)[6][4], int f, int group, int member,
                           __nv_bfloat16* pairs) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < 2 * half + 2; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = 16 * half + 8 * (e / 2) + group, j = 8 * n + 2 * member + e % 2;
        if (j < i && i < f) pairs[PairsOf(i) + j] = __float2bfloat16_rn(sum[2 * half + n][e]);
      }
    }
  }
}

__global__ void __launch_bounds__(32 * kWarps, 5)
    ForwardOnTensorCoresKernel(int64_t samples, int f, int dim, int64_t out_stride,
                               const __nv_bfloat16* features, __nv_bfloat16* out) {
  __shared__ uint4 staged[kWarps][kMaxPairs / 8];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, member = lane % 4;
  const int chunks = static_cast<int>(out_stride - dim) / 8;  // of 16 bytes, after vector 0
  uint4* const pairs = staged[warp];
  // Padding after the last pair stays zero.
  for (int c = lane; c < kMaxPairs / 8; c += 32) pairs[c] = uint4{};

  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t s = static_cast<int64_t>(blockIdx.x) * kWarps + warp; s < samples; s += warps) {
    const __nv_bfloat16* x = features + s * f * dim;
    __nv_bfloat16* row = out + s * out_stride;
    float sum[6][4] = {};
    int k = 0;
    for (; k + 32 <= dim; k += 32) AddProducts<4>(f, dim, group, x + k + 8 * member, sum);
    if (k < dim) AddProducts<2>(f, dim, group, x + k + 4 * member, sum);

    __syncwarp();  // the previous sample has been read
    StorePairs(sum, f, group, member, reinterpret_cast<__nv_bfloat16*>(pairs));
    __syncwarp();
    for (int c = lane; c < dim / 8; c += 32)
      reinterpret_cast<uint4*>(row)[c] = reinterpret_cast<const uint4*>(x)[c];
    for (int c = lane; c < chunks; c += 32)
      reinterpret_cast<uint4*>(row + dim)[c] = c < kMaxPairs / 8 ? pairs[c] : uint4{};
  }
}

// A warp's shared memory in the backward kernel, in chunks of 16 bytes: 32 vectors (zero beyond the
// last one), each with a chunk of padding so that 8 rows of a tile are in different banks; then the
// sample's row of d_out, followed by a chunk of zeros.
struct BackwardLayout {
  int row_chunks;       // of a vector
  int gradient_begin;   // of d_out's row
  int gradient_chunks;  // of d_out's row
  int end;

  __host__ __device__ BackwardLayout(int f, int dim)
      : row_chunks(dim / 8),
        gradient_begin(kMaxVectors * (row_chunks + 1)),
        gradient_chunks((dim + PairsOf(f) + 7) / 8),
        end(gradient_begin + gradient_chunks + 1) {}
};

// Calls body(c, chunk in shared memory) for chunks c = lane, lane + 32, ... of a sample's vectors.
template <class Body>
__device__ void ForVectorChunks(int f, int row_chunks, int lane, const Body& body) {
  const int rows = 32 / row_chunks, columns = 32 % row_chunks;
  int row = lane / row_chunks, column = lane % row_chunks;
  for (int c = lane; c < f * row_chunks; c += 32) {
    body(c, row * (row_chunks + 1) + column);
    row += rows;
    column += columns;
    if (column >= row_chunks) {
      column -= row_chunks;
      ++row;
    }
  }
}

// The symmetric matrix of the pairs' gradients [32, 32] as tiles [16, 16], zero on the diagonal and
// where there is no vector. `zero`: the index of a zero in `gradient`.
__device__ void LoadPairGradients(const uint16_t* gradient, int f, int dim, int zero, int group,
                                  int member, uint32_t (&tiles)[2][2][4]) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int i = 16 * m + 8 * (r % 2) + group;
        uint32_t value[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int j = 16 * k + 8 * (r / 2) + 2 * member + e;
          const int high = max(i, j), low = min(i, j);
          value[e] = gradient[low < high && high < f ? dim + PairsOf(high) + low : zero];
        }
        tiles[m][k][r] = value[0] | value[1] << 16;
      }
    }
  }
}

// x [32, dim] becomes the pairs' gradients · x, 8 columns at a time; row 0 also gets vector 0's own
// part of `gradient`. Rows from f on stay zero.
__device__ void MultiplyInPlace(const uint32_t (&tiles)[2][2][4], const __nv_bfloat16* gradient,
                                int f, int dim, int lane, __nv_bfloat16* x) {
  const int stride = dim + 8, group = lane / 4, member = lane % 4;
  constexpr int kAtOnce = 2;
  for (int begin = 0; begin < dim; begin += 8 * kAtOnce) {
    uint32_t operand[kAtOnce][4];
    float sum[kAtOnce][2][4] = {};
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
      LoadTransposedTile(x + lane * stride + begin + 8 * n, operand[n]);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
          AddTileProduct(tiles[m][k], operand[n][2 * k], operand[n][2 * k + 1], sum[n][m]);
      }
    }
    __syncwarp();  // all lanes have these columns
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int column = begin + 8 * n + 2 * member;
      if (group == 0) {
        sum[n][0][0] += __bfloat162float(gradient[column]);
        sum[n][0][1] += __bfloat162float(gradient[column + 1]);
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int i = 8 * r + group;
        const float* pair = sum[n][r / 2] + r % 2 * 2;
        if (i < f)
          *reinterpret_cast<__nv_bfloat162*>(x + i * stride + column) =
              __floats2bfloat162_rn(pair[0], pair[1]);
      }
    }
  }
}

__global__ void __launch_bounds__(32 * kWarps, 5)
    BackwardOnTensorCoresKernel(int64_t samples, int f, int dim, int64_t out_stride,
                                const __nv_bfloat16* features, const __nv_bfloat16* d_out,
                                __nv_bfloat16* d_features) {
  extern __shared__ uint4 shared_by_warps[];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const BackwardLayout layout(f, dim);
  uint4* const vectors = shared_by_warps + warp * layout.end;
  uint4* const gradient = vectors + layout.gradient_begin;
  const int64_t sample_chunks = static_cast<int64_t>(f) * layout.row_chunks;
  for (int c = f * (layout.row_chunks + 1) + lane; c < layout.gradient_begin; c += 32)
    vectors[c] = uint4{};
  if (lane == 0) gradient[layout.gradient_chunks] = uint4{};

  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t s = static_cast<int64_t>(blockIdx.x) * kWarps + warp; s < samples; s += warps) {
    const uint4* x = reinterpret_cast<const uint4*>(features) + s * sample_chunks;
    const uint4* row = reinterpret_cast<const uint4*>(d_out + s * out_stride);
    ForVectorChunks(f, layout.row_chunks, lane, [&](int c, int at) {
      __pipeline_memcpy_async(vectors + at, x + c, sizeof(uint4));
    });
    for (int c = lane; c < layout.gradient_chunks; c += 32)
      __pipeline_memcpy_async(gradient + c, row + c, sizeof(uint4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();

    uint32_t tiles[2][2][4];
    LoadPairGradients(reinterpret_cast<const uint16_t*>(gradient), f, dim,
                      8 * layout.gradient_chunks, lane / 4, lane % 4, tiles);
    MultiplyInPlace(tiles, reinterpret_cast<const __nv_bfloat16*>(gradient), f, dim, lane,
                    reinterpret_cast<__nv_bfloat16*>(vectors));
    __syncwarp();

    uint4* to = reinterpret_cast<uint4*>(d_features) + s * sample_chunks;
    ForVectorChunks(f, layout.row_chunks, lane, [&](int c, int at) { to[c] = vectors[at]; });
    __syncwarp();  // before the next sample overwrites shared memory
  }
}

}  // namespace

bool FitsTensorCores(const InteractionShape& shape) {
  return shape.precision == Precision::kBFloat16 && shape.vectors <= kMaxVectors &&
         shape.dim % 16 == 0 && shape.dim <= kMaxDim && shape.out_stride % 8 == 0;
}

void InteractionForwardOnTensorCores(const InteractionShape& shape, const void* features, void* out,
                                     cudaStream_t stream) {
  const unsigned blocks =
      static_cast<unsigned>(std::min<int64_t>((shape.samples - 1) / kWarps + 1, 132 * 5));
  ForwardOnTensorCoresKernel<<<blocks, 32 * kWarps, 0, stream>>>(
      shape.samples, shape.vectors, shape.dim, shape.out_stride,
      static_cast<const __nv_bfloat16*>(features), static_cast<__nv_bfloat16*>(out));
  CheckLaunch("the dot interaction");
}

void InteractionBackwardOnTensorCores(const InteractionShape& shape, const void* features,
                                      const void* d_out, void* d_features, cudaStream_t stream) {
  const int bytes =
      kWarps * BackwardLayout(shape.vectors, shape.dim).end * static_cast<int>(sizeof(uint4));
  const auto set = [](cudaFuncAttribute attribute, int value) {
    Check(cudaFuncSetAttribute(BackwardOnTensorCoresKernel, attribute, value),
          "the dot interaction's gradient");
  };
  set(cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  set(cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  const unsigned blocks =
      static_cast<unsigned>(std::min<int64_t>((shape.samples - 1) / kWarps + 1, 132 * 5));
  BackwardOnTensorCoresKernel<<<blocks, 32 * kWarps, bytes, stream>>>(
      shape.samples, shape.vectors, shape.dim, shape.out_stride,
      static_cast<const __nv_bfloat16*>(features), static_cast<const __nv_bfloat16*>(d_out),
      static_cast<__nv_bfloat16*>(d_features));
  CheckLaunch("the dot interaction's gradient");
}

}  // namespace renzan::cuda
