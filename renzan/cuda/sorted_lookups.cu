#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <limits>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kThreads = 256;  // of a block

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

// A warp for kWarp bags of a table, whose beginnings its lanes hold.
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
      // The last bag that begins at or before k: an empty one has another after it that does.
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

struct BeginsRow {
  const uint32_t* rows;
  __device__ bool operator()(uint32_t i) const { return i == 0 || rows[i] != rows[i - 1]; }
};

__global__ void EndBegins(const uint32_t* num_rows, uint32_t num_lookups, uint32_t* begins) {
  begins[*num_rows] = num_lookups;
}

cudaError_t SortPairs(void* temp, size_t* temp_bytes, const uint32_t* keys, uint32_t* sorted_keys,
                      const uint32_t* values, uint32_t* sorted_values, int64_t n, int bits,
                      cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, keys, sorted_keys, values,
                                         sorted_values, static_cast<int>(n), 0, bits, stream);
}

cudaError_t SelectBegins(void* temp, size_t* temp_bytes, const uint32_t* rows, uint32_t* begins,
                         uint32_t* num_rows, int64_t n, cudaStream_t stream) {
  return cub::DeviceSelect::If(temp, *temp_bytes, thrust::counting_iterator<uint32_t>(0), begins,
                               num_rows, static_cast<int>(n), BeginsRow{rows}, stream);
}

}  // namespace

SortedLookups::SortedLookups(const EmbeddingShape& shape, int64_t max_lookups)
    : shape_(shape),
      row_bits_(std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(
                                std::max<int64_t>(1, shape.total_rows) - 1))))) {
  Check((max_lookups < std::numeric_limits<int32_t>::max() &&
         shape.num_tables * shape.samples <= std::numeric_limits<uint32_t>::max())
            ? cudaSuccess
            : cudaErrorInvalidValue,
        "sorting the lookups of a batch: there are too many");
  size_t sort_bytes = 0, select_bytes = 0;
  Check(SortPairs(nullptr, &sort_bytes, nullptr, nullptr, nullptr, nullptr, max_lookups, row_bits_,
                  nullptr),
        "preparing to sort lookups");
  Check(SelectBegins(nullptr, &select_bytes, nullptr, nullptr, nullptr, max_lookups, nullptr),
        "preparing to sort lookups");
  temp_bytes_ = Aligned(std::max(sort_bytes, select_bytes));
  const size_t array = Aligned((static_cast<size_t>(max_lookups) + 1) * sizeof(uint32_t));
  memory_ = DeviceMemory(4 * array + Aligned(sizeof(uint32_t)) + temp_bytes_);
  std::byte* next = memory_.as<std::byte>();
  const auto take = [&](size_t bytes) {
    next += bytes;
    return reinterpret_cast<uint32_t*>(next - bytes);
  };
  rows_ = take(array);
  bags_ = take(array);
  unsorted_rows_ = take(array);
  unsorted_bags_ = take(array);
  begins_ = unsorted_rows_;  // which are not needed after the sort
  num_rows_ = take(Aligned(sizeof(uint32_t)));
  temp_ = next;
}

void SortedLookups::Sort(const DeviceTable* tables, const DeviceLookups& lookups,
                         cudaStream_t stream) {
  const int64_t n = lookups.num_lookups;
  if (n == 0) {
    Check(cudaMemsetAsync(num_rows_, 0, sizeof(uint32_t), stream), "sorting lookups");
    Check(cudaMemsetAsync(begins_, 0, sizeof(uint32_t), stream), "sorting lookups");
    return;
  }
  const KeyArguments arguments{tables, lookups, static_cast<uint32_t>(shape_.samples),
                               unsorted_rows_, unsorted_bags_};
  const dim3 grid(static_cast<unsigned>(shape_.num_tables),
                  static_cast<unsigned>(
                      std::clamp<int64_t>((shape_.samples + kThreads - 1) / kThreads, 1, 65535)));
  if (lookups.offsets == nullptr) {
    OneHotKeys<<<grid, kThreads, 0, stream>>>(arguments);
  } else {
    MultiHotKeys<<<grid, kThreads, 0, stream>>>(arguments);
  }
  CheckLaunch("listing lookups");
  size_t temp_bytes = temp_bytes_;
  Check(SortPairs(temp_, &temp_bytes, unsorted_rows_, rows_, unsorted_bags_, bags_, n, row_bits_,
                  stream),
        "sorting lookups");
  Check(SelectBegins(temp_, &temp_bytes, rows_, begins_, num_rows_, n, stream), "sorting lookups");
  EndBegins<<<1, 1, 0, stream>>>(num_rows_, static_cast<uint32_t>(n), begins_);
  CheckLaunch("sorting lookups");
}

}  // namespace renzan::cuda
