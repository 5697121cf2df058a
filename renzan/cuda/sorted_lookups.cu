#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <limits>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_values.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kThreads = kStreamingThreads;  // per block

// Rows with many lookups are divided among warps: a warp that handles a row alone must not take
// long compared with all rows, and a leaf must be worth a task.
constexpr int64_t kManyPerWorker = 4;
constexpr int64_t kMaxRowsOfMany = 1 << 17;

struct KeyArguments {
  const DeviceTable* tables;
  DeviceLookups lookups;
  uint32_t samples;
  uint32_t* rows;
  uint32_t* bags;
};

__global__ void __launch_bounds__(kThreads) OneHotKeys(const __grid_constant__ KeyArguments a) {
  const uint32_t table = blockIdx.x;
  const uint32_t first_row = static_cast<uint32_t>(a.tables[table].first_row);
  for (uint32_t s = blockIdx.y * kThreads + threadIdx.x; s < a.samples; s += gridDim.y * kThreads) {
    const uint32_t bag = table * a.samples + s;
    a.rows[bag] = first_row + static_cast<uint32_t>(a.lookups.rows[bag]);
    a.bags[bag] = bag;
  }
}

// One warp for kWarp bags of a table, whose beginnings its lanes hold.
__global__ void __launch_bounds__(kThreads) MultiHotKeys(const __grid_constant__ KeyArguments a) {
  const uint32_t table = blockIdx.x, lane = threadIdx.x % kWarp;
  const uint32_t first_row = static_cast<uint32_t>(a.tables[table].first_row);
  const int32_t* offsets = a.lookups.offsets + table * (int64_t{a.samples} + 1);
  for (uint32_t first = blockIdx.y * kThreads + threadIdx.x - lane; first < a.samples;
       first += gridDim.y * kThreads) {
    const int32_t begin = offsets[min(first + lane, a.samples)];
    const int32_t stop = offsets[min(first + kWarp, a.samples)];
    for (int32_t k = __shfl_sync(kAllLanes, begin, 0) + static_cast<int32_t>(lane);
         __any_sync(kAllLanes, k < stop); k += kWarp) {
      // The last bag that begins at or before k: after an empty bag there is another that begins
      // there.
      uint32_t bag = 0;
#pragma unroll
      for (uint32_t step = kWarp / 2; step > 0; step /= 2)
        if (__shfl_sync(kAllLanes, begin, static_cast<int>(bag + step)) <= k) bag += step;
      if (k < stop) {
        a.rows[k] = first_row + static_cast<uint32_t>(a.lookups.rows[k]);
        a.bags[k] = table * a.samples + first + bag;
      }
    }
  }
}

// Whether a lookup is the only one of its row, or the first of several.
struct IsOne {
  const uint32_t* rows;
  __device__ bool operator()(uint32_t i) const {
    return (i == 0 || rows[i] != rows[i - 1]) && rows[i] != rows[i + 1];
  }
};
struct BeginsSeveral {
  const uint32_t* rows;
  __device__ bool operator()(uint32_t i) const {
    return (i == 0 || rows[i] != rows[i - 1]) && rows[i] == rows[i + 1];
  }
};

struct ListArguments {
  const DeviceTable* tables;
  uint32_t num_lookups, samples, samples_of_worker, workers;
  uint32_t many;
  uint64_t leaf_floats;
  const uint32_t *rows, *bags, *begins;
  uint32_t *ends, *leaf_begins;
  RowOfMany* rows_of_many;
  LookupsByRow::Counts* counts;
};

// The first index in [begin, end) from which on `after` holds, or `end`.
template <class After>
__device__ uint32_t FindFirst(uint32_t begin, uint32_t end, const After& after) {
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (after(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// Finds where rows with several lookups end, and moves those with many to their own list.
__global__ void __launch_bounds__(kThreads) FindEnds(const __grid_constant__ ListArguments a) {
  const uint32_t several = a.counts->several;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < several; i += gridDim.x * kThreads) {
    const uint32_t begin = a.begins[i], row = a.rows[begin];
    // Most rows have few lookups, so their ends are near.
    uint32_t before = begin + 1, step = 1;
    while (before + step < a.num_lookups && a.rows[before + step] == row) {
      before += step;
      step *= 2;
    }
    uint32_t end = FindFirst(before + 1, min(before + step, a.num_lookups),
                             [&](uint32_t k) { return a.rows[k] != row; });
    if (end - begin >= a.many) {
      const uint32_t table = a.bags[begin] / a.samples;
      const uint64_t floats = uint64_t{a.workers} * static_cast<uint32_t>(a.tables[table].dim);
      const uint64_t leaves = atomicAdd(&a.counts->leaf_floats, floats);
      if (leaves + floats <= a.leaf_floats) {
        a.rows_of_many[atomicAdd(&a.counts->many, 1)] = {leaves, row, table, begin, end};
        end = begin;
      }
    }
    a.ends[i] = end;
  }
}

__global__ void __launch_bounds__(kThreads) FindLeaves(const __grid_constant__ ListArguments a) {
  const uint32_t leaves = a.counts->many * (a.workers + 1);
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < leaves; i += gridDim.x * kThreads) {
    const RowOfMany row = a.rows_of_many[i / (a.workers + 1)];
    const uint32_t bag = row.table * a.samples + i % (a.workers + 1) * a.samples_of_worker;
    a.leaf_begins[i] = FindFirst(row.begin, row.end, [&](uint32_t k) { return a.bags[k] >= bag; });
  }
}

cudaError_t SortPairs(void* temp, size_t* temp_bytes, const uint32_t* keys, uint32_t* sorted_keys,
                      const uint32_t* values, uint32_t* sorted_values, int64_t n, int bits,
                      cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, keys, sorted_keys, values,
                                         sorted_values, static_cast<int>(n), 0, bits, stream);
}

// `counts` [2]: rows with one lookup, and with several.
cudaError_t ListRows(void* temp, size_t* temp_bytes, const uint32_t* rows, uint32_t* ones,
                     uint32_t* begins, uint32_t* counts, int64_t n, cudaStream_t stream) {
  return cub::DevicePartition::If(temp, *temp_bytes, thrust::counting_iterator<uint32_t>(0), ones,
                                  begins, thrust::make_discard_iterator(), counts,
                                  static_cast<int>(n), IsOne{rows}, BeginsSeveral{rows}, stream);
}

}  // namespace

SortedLookups::SortedLookups(const EmbeddingShape& shape, int64_t max_lookups,
                             uint64_t max_leaf_floats)
    : shape_(shape),
      row_bits_(std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(
                                std::max<int64_t>(1, shape.total_rows) - 1))))),
      many_(static_cast<uint32_t>(std::max({kManyLookups, kManyPerWorker * shape.virtual_workers,
                                            max_lookups / kMaxRowsOfMany + 1}))) {
  Check((max_lookups <= kMaxDeviceLookups &&
         shape.num_tables * shape.samples <= std::numeric_limits<uint32_t>::max() &&
         shape.samples % shape.virtual_workers == 0)
            ? cudaSuccess
            : cudaErrorInvalidValue,
        "sorting the lookups of a batch: there are too many, or the virtual workers do not divide "
        "the samples");
  size_t sort_bytes = 0, list_bytes = 0;
  Check(SortPairs(nullptr, &sort_bytes, nullptr, nullptr, nullptr, nullptr, max_lookups, row_bits_,
                  nullptr),
        "preparing to sort lookups");
  Check(ListRows(nullptr, &list_bytes, nullptr, nullptr, nullptr, nullptr, max_lookups, nullptr),
        "preparing to sort lookups");
  temp_bytes_ = Aligned(std::max(sort_bytes, list_bytes));
  const size_t lookups = static_cast<size_t>(max_lookups);
  const size_t max_many = lookups / many_ + 1;
  const size_t workers = static_cast<size_t>(shape.virtual_workers);
  leaf_floats_ =
      std::min(max_leaf_floats, lookups / many_ * workers * static_cast<uint64_t>(shape.features));
  const size_t array = Aligned((lookups + 1) * sizeof(uint32_t));
  const size_t many_bytes = Aligned(max_many * sizeof(RowOfMany));
  const size_t leaves_bytes = Aligned(max_many * (workers + 1) * sizeof(uint32_t));
  memory_ =
      DeviceMemory(4 * array + many_bytes + leaves_bytes + Aligned(sizeof(*counts_)) + temp_bytes_);
  std::byte* next = memory_.as<std::byte>();
  const auto take = [&](size_t bytes) {
    next += bytes;
    return reinterpret_cast<uint32_t*>(next - bytes);
  };
  rows_ = take(array);
  bags_ = take(array);
  unsorted_rows_ = take(array);
  unsorted_bags_ = take(array);
  rows_of_many_ = reinterpret_cast<RowOfMany*>(take(many_bytes));
  leaf_begins_ = take(leaves_bytes);
  counts_ = reinterpret_cast<LookupsByRow::Counts*>(take(Aligned(sizeof(*counts_))));
  temp_ = next;
  // After the sort, the unsorted arrays can be reused. At most every other lookup begins a row with
  // several.
  ends_ = unsorted_bags_ + lookups / 2;
  by_row_ = {.rows = rows_,
             .bags = bags_,
             .ones = unsorted_rows_,
             .begins = unsorted_bags_,
             .ends = ends_,
             .many = rows_of_many_,
             .leaf_begins = leaf_begins_,
             .counts = counts_};
}

void SortedLookups::Sort(const DeviceTable* tables, const DeviceLookups& lookups,
                         cudaStream_t stream) {
  const int64_t n = lookups.num_lookups;
  Check(cudaMemsetAsync(counts_, 0, sizeof(*counts_), stream), "sorting lookups");
  if (n == 0) return;
  const KeyArguments keys{tables, lookups, static_cast<uint32_t>(shape_.samples), unsorted_rows_,
                          unsorted_bags_};
  const dim3 grid(static_cast<unsigned>(shape_.num_tables),
                  static_cast<unsigned>(
                      std::clamp<int64_t>((shape_.samples + kThreads - 1) / kThreads, 1, 65535)));
  if (lookups.offsets == nullptr) {
    OneHotKeys<<<grid, kThreads, 0, stream>>>(keys);
  } else {
    MultiHotKeys<<<grid, kThreads, 0, stream>>>(keys);
  }
  CheckLaunch("listing lookups");
  size_t temp_bytes = temp_bytes_;
  Check(SortPairs(temp_, &temp_bytes, unsorted_rows_, rows_, unsorted_bags_, bags_, n, row_bits_,
                  stream),
        "sorting lookups");
  Check(cudaMemsetAsync(rows_ + n, 0xFF, sizeof(uint32_t), stream), "sorting lookups");
  Check(ListRows(temp_, &temp_bytes, rows_, unsorted_rows_, unsorted_bags_, &counts_->ones, n,
                 stream),
        "listing rows");
  const uint32_t workers = static_cast<uint32_t>(shape_.virtual_workers);
  const ListArguments lists{.tables = tables,
                            .num_lookups = static_cast<uint32_t>(n),
                            .samples = static_cast<uint32_t>(shape_.samples),
                            .samples_of_worker = static_cast<uint32_t>(shape_.samples) / workers,
                            .workers = workers,
                            .many = many_,
                            .leaf_floats = leaf_floats_,
                            .rows = rows_,
                            .bags = bags_,
                            .begins = by_row_.begins,
                            .ends = ends_,
                            .leaf_begins = leaf_begins_,
                            .rows_of_many = rows_of_many_,
                            .counts = counts_};
  FindEnds<<<StreamingBlocks(n / 2), kThreads, 0, stream>>>(lists);
  CheckLaunch("listing rows");
  FindLeaves<<<StreamingBlocks(n / many_ * (workers + 1)), kThreads, 0, stream>>>(lists);
  CheckLaunch("listing rows");
}

}  // namespace renzan::cuda
