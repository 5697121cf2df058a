// Pooled lookup and the exact sparse update on a GPU, against copying memory: of a table much
// larger than L2, for the usual dimensions and pooling factors, batches in turn. Counts the
// bytes that must move: rows, ids and pooled rows; for the update, a gradient per lookup, and each
// distinct row and its state read and written. Sorting the lookups is measured separately: it
// depends on ids only.
//
//   cuda_embedding_bench
//
// A table, then the same as one line of JSON. Without a GPU: exit code 77.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/memory.cuh"

namespace renzan::cuda {
namespace {

constexpr int64_t kTableBytes = int64_t{8} << 30;
constexpr int64_t kRowBytesOfBatch = int64_t{2} << 30;
constexpr int64_t kCopiedBytes = int64_t{4} << 30;
constexpr int kBatches = 3, kWarmUps = 3, kRepeats = 24;
constexpr int kVirtualWorkers = 8;

__device__ uint64_t Mix(uint64_t x) {  // of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// In [0, 1).
__device__ double Uniform(uint64_t seed, int64_t i) {
  const uint64_t bits = Mix(Mix(seed + 1) + static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

__global__ void FillValues(int64_t n, uint64_t seed, float scale, float* values) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x)
    values[i] = scale * static_cast<float>(Uniform(seed, i) - 0.5);
}

// Power law: the k-th row with a probability of about 1 / (k·ln rows).
__global__ void FillIds(int64_t n, uint64_t seed, int64_t rows, bool power_law, int32_t* ids) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    const double u = Uniform(seed, i);
    const double place =
        power_law ? exp(u * log(static_cast<double>(rows))) - 1 : u * static_cast<double>(rows);
    ids[i] = static_cast<int32_t>(min(static_cast<int64_t>(place), rows - 1));
  }
}

__global__ void FillOffsets(int64_t samples, int64_t pooling, int32_t* offsets) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i <= samples;
       i += int64_t{gridDim.x} * blockDim.x)
    offsets[i] = static_cast<int32_t>(i * pooling);
}

constexpr int kFillBlocks = 4096, kFillThreads = 256;

class TimedEvent {
 public:
  TimedEvent() { Check(cudaEventCreate(&event_), "creating an event"); }
  TimedEvent(const TimedEvent&) = delete;
  ~TimedEvent() { cudaEventDestroy(event_); }
  void Record(const Stream& stream) {
    Check(cudaEventRecord(event_, stream.get()), "recording an event");
  }
  // Of two that have happened.
  double SecondsSince(const TimedEvent& before) const {
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, before.event_, event_), "measuring");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size()) / 2,
                   values.end());
  return values[values.size() / 2];
}

struct Case {
  int64_t pooling, dim;
  SparseOptimizerType optimizer;
  bool power_law = false;
};

struct Result {
  Case of;
  int64_t lookups, distinct_rows;
  double forward_s, sort_s, update_s, sort_and_update_s;
  double forward_bytes, update_bytes;
};

class Bench {
 public:
  Bench() : weights_(kTableBytes), features_(kCopiedBytes), gradients_(kCopiedBytes) {
    Fill(weights_, 1, 0.1f);
    Fill(gradients_, 2, 1e-3f);
    stream_.Synchronize();
  }

  // Bytes per second, read plus written.
  double CopyRate() {
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUps + kRepeats; ++i) {
      begin_.Record(stream_);
      Check(cudaMemcpyAsync(features_.as<char>(), weights_.as<char>() + i % 2 * kCopiedBytes,
                            kCopiedBytes, cudaMemcpyDeviceToDevice, stream_.get()),
            "copying");
      end_.Record(stream_);
      stream_.Synchronize();
      if (i >= kWarmUps) seconds.push_back(end_.SecondsSince(begin_));
    }
    return 2.0 * static_cast<double>(kCopiedBytes) / Median(seconds);
  }

  Result Measure(const Case& of) {
    const int64_t row_bytes = of.dim * static_cast<int64_t>(sizeof(float));
    const int64_t rows = kTableBytes / row_bytes;
    const int64_t samples =
        kRowBytesOfBatch / row_bytes / of.pooling / kVirtualWorkers * kVirtualWorkers;
    const int64_t lookups = samples * of.pooling;
    const EmbeddingShape shape{.num_tables = 1,
                               .samples = samples,
                               .virtual_workers = kVirtualWorkers,
                               .total_rows = rows,
                               .features = of.dim,
                               .optimizer = of.optimizer};
    DeviceMemory state(static_cast<size_t>(rows) * sizeof(float));
    const DeviceTable table{.weights = weights_.as<float>(),
                            .state = state.as<float>(),
                            .dim = static_cast<int32_t>(of.dim)};
    DeviceMemory tables(sizeof(table)), offsets((static_cast<size_t>(samples) + 1) * 4);
    DeviceMemory touched(static_cast<size_t>(rows) / 8 + 4), finite(4), step_memory(16);
    const SparseStepOnDevice step{.lr = 1e-3f, .epsilon = 1e-8f};
    std::vector<DeviceMemory> ids;
    for (uint64_t b = 0; b < kBatches; ++b) {
      ids.emplace_back(static_cast<size_t>(lookups) * sizeof(int32_t));
      FillIds<<<kFillBlocks, kFillThreads>>>(lookups, 10 + b, rows, of.power_law,
                                             ids.back().as<int32_t>());
    }
    FillOffsets<<<kFillBlocks, kFillThreads>>>(samples, of.pooling, offsets.as<int32_t>());
    CheckLaunch("drawing ids");
    Check(cudaDeviceSynchronize(), "drawing ids");
    CopyToDevice(&table, sizeof(table), tables.as<void>(), stream_);
    CopyToDevice(&step, sizeof(step), step_memory.as<void>(), stream_);
    stream_.Synchronize();

    SortedLookups sorted(shape, lookups);
    SparseUpdate update(shape, sorted.leaf_floats());
    std::vector<double> forward_s, sort_s, update_s, both_s;
    TimedEvent pooled, has_sorted;
    for (int i = 0; i < kWarmUps + kRepeats; ++i) {
      const DeviceLookups batch{.rows = ids[static_cast<size_t>(i % kBatches)].as<int32_t>(),
                                .offsets = of.pooling == 1 ? nullptr : offsets.as<int32_t>(),
                                .num_lookups = lookups};
      begin_.Record(stream_);
      PoolFeatures(shape, tables.as<DeviceTable>(), batch, features_.as<void>(), stream_.get());
      pooled.Record(stream_);
      sorted.Sort(tables.as<DeviceTable>(), batch, stream_.get());
      has_sorted.Record(stream_);
      update.Apply(step_memory.as<SparseStepOnDevice>(), tables.as<DeviceTable>(), batch,
                   sorted.by_row(), gradients_.as<void>(), touched.as<uint32_t>(),
                   finite.as<int32_t>(), stream_.get());
      end_.Record(stream_);
      stream_.Synchronize();
      if (i < kWarmUps) continue;
      forward_s.push_back(pooled.SecondsSince(begin_));
      sort_s.push_back(has_sorted.SecondsSince(pooled));
      update_s.push_back(end_.SecondsSince(has_sorted));
      both_s.push_back(end_.SecondsSince(pooled));
    }
    LookupsByRow::Counts counts;
    CopyToHost(sorted.by_row().counts, sizeof(counts), &counts, stream_);
    stream_.Synchronize();
    const uint32_t distinct = counts.ones + counts.several;
    const double row = static_cast<double>(row_bytes), n = static_cast<double>(lookups);
    const double state_bytes = of.optimizer == SparseOptimizerType::kRowWiseAdagrad ? 4 : 0;
    const double ids_bytes = 4 * n + (of.pooling == 1 ? 0 : 4 * static_cast<double>(samples));
    return {.of = of,
            .lookups = lookups,
            .distinct_rows = distinct,
            .forward_s = Median(forward_s),
            .sort_s = Median(sort_s),
            .update_s = Median(update_s),
            .sort_and_update_s = Median(both_s),
            .forward_bytes = n * row + ids_bytes + static_cast<double>(samples) * row,
            .update_bytes = n * row + 2 * static_cast<double>(distinct) * (row + state_bytes)};
  }

 private:
  void Fill(const DeviceMemory& memory, uint64_t seed, float scale) {
    Check(cudaDeviceSynchronize(), "clearing memory");
    FillValues<<<kFillBlocks, kFillThreads, 0, stream_.get()>>>(
        static_cast<int64_t>(memory.bytes() / sizeof(float)), seed, scale, memory.as<float>());
    CheckLaunch("filling memory");
  }

  Stream stream_;
  TimedEvent begin_, end_;
  DeviceMemory weights_, features_, gradients_;
};

const char* OptimizerName(SparseOptimizerType type) {
  return type == SparseOptimizerType::kSgd ? "sgd" : "rowwise_adagrad";
}

void PrintRow(const Result& r, double copy_rate) {
  const double forward = r.forward_bytes / r.forward_s, update = r.update_bytes / r.update_s;
  std::printf(
      "%7lld %4lld %-15s %-9s %9lld %9lld | %8.3f %6.0f %4.0f%% | %8.3f %6.0f %4.0f%% | "
      "%8.3f %8.3f\n",
      static_cast<long long>(r.of.pooling), static_cast<long long>(r.of.dim),
      OptimizerName(r.of.optimizer), r.of.power_law ? "power-law" : "uniform",
      static_cast<long long>(r.lookups), static_cast<long long>(r.distinct_rows), 1e3 * r.forward_s,
      1e-9 * forward, 100 * forward / copy_rate, 1e3 * r.update_s, 1e-9 * update,
      100 * update / copy_rate, 1e3 * r.sort_s, 1e3 * r.sort_and_update_s);
  std::fflush(stdout);
}

void PrintJson(const std::vector<Result>& results, const char* device, double copy_rate) {
  std::printf("{\"device\": \"%s\", \"copy_gb_s\": %.1f, \"cases\": [", device, 1e-9 * copy_rate);
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    const double forward = r.forward_bytes / r.forward_s, update = r.update_bytes / r.update_s;
    std::printf(
        "%s{\"pooling\": %lld, \"dim\": %lld, \"optimizer\": \"%s\", \"ids\": \"%s\", "
        "\"lookups\": %lld, \"distinct_rows\": %lld, \"forward_ms\": %.4f, "
        "\"forward_gb_s\": %.1f, \"forward_share\": %.3f, \"update_ms\": %.4f, "
        "\"update_gb_s\": %.1f, \"update_share\": %.3f, \"sort_ms\": %.4f, "
        "\"sort_and_update_ms\": %.4f}",
        i == 0 ? "" : ", ", static_cast<long long>(r.of.pooling), static_cast<long long>(r.of.dim),
        OptimizerName(r.of.optimizer), r.of.power_law ? "power_law" : "uniform",
        static_cast<long long>(r.lookups), static_cast<long long>(r.distinct_rows),
        1e3 * r.forward_s, 1e-9 * forward, forward / copy_rate, 1e3 * r.update_s, 1e-9 * update,
        update / copy_rate, 1e3 * r.sort_s, 1e3 * r.sort_and_update_s);
  }
  std::printf("]}\n");
}

int Main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "cuda_embedding_bench: no GPU\n");
    return 77;
  }
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU");
  Bench bench;
  const double copy_rate = bench.CopyRate();
  std::printf("%s, copying at %.0f GB/s (read + written)\n", properties.name, 1e-9 * copy_rate);
  std::printf(
      "pooling  dim optimizer       ids         lookups      rows | forward ms  GB/s    %% | "
      "update ms  GB/s    %% |  sort ms sort+update\n");
  std::vector<Case> cases;
  for (const int64_t pooling : {1, 20, 100})
    for (const int64_t dim : {64, 128, 256})
      for (const auto optimizer : {SparseOptimizerType::kRowWiseAdagrad, SparseOptimizerType::kSgd})
        cases.push_back({pooling, dim, optimizer});
  for (const int64_t pooling : {1, 20})
    cases.push_back({pooling, 128, SparseOptimizerType::kRowWiseAdagrad, true});
  std::vector<Result> results;
  for (const Case& of : cases) {
    results.push_back(bench.Measure(of));
    PrintRow(results.back(), copy_rate);
  }
  PrintJson(results, properties.name, copy_rate);
  return 0;
}

}  // namespace
}  // namespace renzan::cuda

int main() { return renzan::cuda::Main(); }
