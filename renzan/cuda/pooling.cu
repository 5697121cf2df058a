#include <algorithm>
#include <cstdint>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kPoolThreads = 256;
constexpr int kRowsAtOnce = 8;       // loads in flight per lane
constexpr int kBlockRowsAtOnce = 4;  // the same if there are row blocks
constexpr int kRowBlockLevels = 16;  // 2^16 row blocks

struct PoolArguments {
  const DeviceTable* tables;
  const int32_t* rows;
  const int32_t* offsets;
  void* features;
  int64_t samples;
  int64_t stride;     // of the features, in values
  int bags_of_group;  // consecutive samples, whose lookups form one stream of loads
};

// What a lane needs to know about a table: four columns.
template <class Value>
struct PoolColumns {
  const float* weights;  // of row 0
  int dim;
  bool mean;

  __device__ float4 Row(int32_t row) const { return LoadFour(weights + int64_t{row} * dim); }

  __device__ void Write(int length, float4 sum, Value* to) const {
    if (length == 0) sum = Zeros();
    if (mean && length > 1) sum = Scale(__fdiv_rn(1.0f, static_cast<float>(length)), sum);
    StoreFour(sum, to);
  }
};

// The functions below handle bags [first, last) of a table. `features` points to the table's
// columns of sample 0; `stride` values separate samples. `offsets` are the table's.

// Bags of one row each; `rows` is that of sample 0.
template <class Value>
__device__ void GatherBags(const PoolColumns<Value>& columns, const int32_t* rows, int first,
                           int last, Value* features, int64_t stride) {
  rows += first;
  features += first * stride;
#pragma unroll 1
  for (int left = last - first; left > 0; left -= kRowsAtOnce) {
    float4 x[kRowsAtOnce];
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u)
      if (u < left) x[u] = columns.Row(__ldg(rows + u));
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u)
      if (u < left) StoreFour(x[u], features + u * stride);
    rows += kRowsAtOnce;
    features += kRowsAtOnce * stride;
  }
}

// The lookups of all bags form one stream, so that even short bags have several loads in flight.
template <class Value>
__device__ void PoolBags(const PoolColumns<Value>& columns, const int32_t* rows,
                         const int32_t* offsets, int first, int last, Value* features,
                         int64_t stride) {
  int left = last - first;  // bags to write
  offsets += first;
  features += first * stride;
  const int32_t stop = __ldg(offsets + left);
  int32_t begin = __ldg(offsets), end = __ldg(++offsets);
  rows += begin;
  float4 sum = Zeros();
  const auto write = [&] {
    columns.Write(end - begin, sum, features);
    features += stride;
    begin = end;
    if (--left > 0) end = __ldg(++offsets);
  };
  int32_t row[kRowsAtOnce];
#pragma unroll
  for (int u = 0; u < kRowsAtOnce; ++u) row[u] = begin + u < stop ? __ldg(rows + u) : 0;
#pragma unroll 1
  for (int32_t k = begin; k < stop; k += kRowsAtOnce) {
    rows += kRowsAtOnce;
    float4 x[kRowsAtOnce];
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u)
      if (k + u < stop) x[u] = columns.Row(row[u]);
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u)
      if (k + kRowsAtOnce + u < stop) row[u] = __ldg(rows + u);
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u) {
      if (k + u < stop) {
#pragma unroll 1
        while (k + u == end) write();
        sum = k + u == begin ? x[u] : Add(sum, x[u]);
      }
    }
  }
#pragma unroll 1
  while (left > 0) write();
}

// The row block that contains `row`, which is `low` or a later one.
__device__ int BlockOfRow(const int64_t* block_begin, int num_blocks, int low, int64_t row) {
  for (int high = num_blocks; high - low > 1;) {
    const int middle = (low + high) / 2;
    (__ldg(block_begin + middle) <= row ? low : high) = middle;
  }
  return low;
}

template <class Value>
__device__ void PoolBagsOfRowBlocks(const PoolColumns<Value>& columns, const int64_t* block_begin,
                                    int num_blocks, const int32_t* rows, const int32_t* offsets,
                                    int first, int last, Value* features, int64_t stride) {
  TreeSum<1, kRowBlockLevels> tree;
  for (int bag = first; bag < last; ++bag) {
    const int32_t begin = __ldg(offsets + bag), end = __ldg(offsets + bag + 1);
    int block = 0;
    int64_t block_end = 0;  // of no block yet
    float4 sum[1] = {Zeros()};
    for (int32_t k = begin; k < end; k += kBlockRowsAtOnce) {
      int32_t row[kBlockRowsAtOnce];
      float4 x[kBlockRowsAtOnce];
#pragma unroll
      for (int u = 0; u < kBlockRowsAtOnce; ++u)
        if (k + u < end) row[u] = __ldg(rows + k + u);
#pragma unroll
      for (int u = 0; u < kBlockRowsAtOnce; ++u)
        if (k + u < end) x[u] = columns.Row(row[u]);
#pragma unroll
      for (int u = 0; u < kBlockRowsAtOnce; ++u) {
        if (k + u < end) {
          if (row[u] < block_end) {
            sum[0] = Add(sum[0], x[u]);
          } else {
            const int next = BlockOfRow(block_begin, num_blocks, block, row[u]);
            if (k + u > begin) tree.Push(block, next, sum);
            block = next;
            block_end = __ldg(block_begin + block + 1);
            sum[0] = x[u];
          }
        }
      }
    }
    tree.Finish(sum);
    columns.Write(end - begin, sum[0], features + bag * stride);
  }
}

// Calls pool(columns, first bag, last bag, these columns of sample 0's features) for this lane's
// part of table blockIdx.x.
template <class Value, class Pool>
__device__ void ForEachGroup(const PoolArguments& a, const Pool& pool) {
  const DeviceTable& table = a.tables[blockIdx.x];
  const int dim = table.dim, lanes = LanesOfRow(dim), lane = threadIdx.x & (lanes - 1);
  const int groups = kPoolThreads / lanes, group = threadIdx.x / lanes;
  const float* const weights = table.weights;
  Value* const features = static_cast<Value*>(a.features) + table.column;
  const bool mean = table.mean != 0;
#pragma unroll 1
  for (int64_t first = (int64_t{blockIdx.y} * groups + group) * a.bags_of_group; first < a.samples;
       first += int64_t{gridDim.y} * groups * a.bags_of_group) {
    const int64_t last = min(first + a.bags_of_group, a.samples);
#pragma unroll 1
    for (int column = 4 * lane; column < dim; column += 4 * lanes)
      pool(PoolColumns<Value>{weights + column, dim, mean}, static_cast<int>(first),
           static_cast<int>(last), features + column);
  }
}

// Where this table's bags begin in `rows`.
__device__ const int32_t* OffsetsOfTable(const PoolArguments& a) {
  return a.offsets + blockIdx.x * (a.samples + 1);
}

// Not inlined: it would take registers away from tables with one block.
template <class Value>
__device__ __noinline__ void PoolTableOfRowBlocks(const PoolArguments& a) {
  const DeviceTable& table = a.tables[blockIdx.x];
  const int64_t* const block_begin = table.block_begin;
  const int num_blocks = table.num_blocks;
  ForEachGroup<Value>(a,
                      [&](const PoolColumns<Value>& columns, int first, int last, Value* features) {
                        PoolBagsOfRowBlocks(columns, block_begin, num_blocks, a.rows,
                                            OffsetsOfTable(a), first, last, features, a.stride);
                      });
}

// In the grid, x is the table, so that blocks that run together write neighbouring columns.
template <class Value>
__global__ void __launch_bounds__(kPoolThreads, 4)
    GatherFeaturesKernel(const __grid_constant__ PoolArguments a) {
  ForEachGroup<Value>(
      a, [&](const PoolColumns<Value>& columns, int first, int last, Value* features) {
        GatherBags(columns, a.rows + blockIdx.x * a.samples, first, last, features, a.stride);
      });
}

template <class Value>
__global__ void __launch_bounds__(kPoolThreads, 3)
    PoolFeaturesKernel(const __grid_constant__ PoolArguments a) {
  if (a.tables[blockIdx.x].num_blocks > 1) return PoolTableOfRowBlocks<Value>(a);
  ForEachGroup<Value>(
      a, [&](const PoolColumns<Value>& columns, int first, int last, Value* features) {
        PoolBags(columns, a.rows, OffsetsOfTable(a), first, last, features, a.stride);
      });
}

// Large enough that a group has several rows to load, small enough that there are many groups.
int BagsOfGroup(const EmbeddingShape& shape, const DeviceLookups& lookups) {
  if (lookups.offsets == nullptr) return kRowsAtOnce;
  const int64_t bags = shape.num_tables * shape.samples;
  const int64_t length = std::max<int64_t>(1, lookups.num_lookups / bags);
  return static_cast<int>(std::clamp<int64_t>(8 * kRowsAtOnce / length, 1, 2 * kRowsAtOnce));
}

// The tables' dimensions are only in device memory: as many blocks as if all had the mean
// dimension.
int64_t BlocksOfTable(const EmbeddingShape& shape, int bags_of_group) {
  const int64_t mean_dim = shape.features / shape.num_tables;
  int64_t lanes = kWarp;
  while (lanes > 1 && lanes * 2 >= mean_dim) lanes /= 2;
  const int64_t bags = kPoolThreads / lanes * bags_of_group;
  return std::clamp<int64_t>((shape.samples + bags - 1) / bags, 1, 65535);
}

template <class Value>
void LaunchPooling(const EmbeddingShape& shape, const DeviceLookups& lookups,
                   const PoolArguments& arguments, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(shape.num_tables),
                  static_cast<unsigned>(BlocksOfTable(shape, arguments.bags_of_group)));
  const auto kernel =
      lookups.offsets == nullptr ? GatherFeaturesKernel<Value> : PoolFeaturesKernel<Value>;
  kernel<<<grid, kPoolThreads, 0, stream>>>(arguments);
  CheckLaunch("pooling embedding rows");
}

}  // namespace

void PoolFeatures(const EmbeddingShape& shape, const DeviceTable* tables,
                  const DeviceLookups& lookups, void* features, cudaStream_t stream) {
  if (shape.num_tables == 0 || shape.samples == 0) return;
  const PoolArguments arguments{
      .tables = tables,
      .rows = lookups.rows,
      .offsets = lookups.offsets,
      .features = features,
      .samples = shape.samples,
      .stride = shape.features,
      .bags_of_group = BagsOfGroup(shape, lookups),
  };
  if (shape.precision == Precision::kFloat32) {
    LaunchPooling<float>(shape, lookups, arguments, stream);
  } else {
    LaunchPooling<__nv_bfloat16>(shape, lookups, arguments, stream);
  }
}

}  // namespace renzan::cuda
