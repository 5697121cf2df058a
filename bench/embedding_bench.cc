// The embedding kernels against the machine: pooled lookup, and the sparse update with row-wise
// Adagrad, of a table much larger than the caches, for the usual dimensions and pooling factors.
// Prints for each the bytes moved per lookup (rows at random, arrays in order), the rate, and how
// close that comes to the least time for these bytes: rows at the rate of reading rows of that
// length at random, arrays at the rate of copying, both measured in alternation.
//
//   embedding_bench [--table-mib 2048] [--rows fp32|fp16|bf16] [--threads N] [--repeats 9]

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/cpus.h"
#include "renzan/base/philox.h"
#include "renzan/base/thread_pool.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/shard.h"
#include "renzan/embedding/sparse_optimizer.h"
#include "renzan/nn/isa.h"
#include "renzan/roofline/machine_limits.h"
#include "renzan/roofline/median.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {
namespace {

constexpr int64_t kLookups = 1 << 18;  // of one measurement
constexpr size_t kCopied = 1 << 23;    // floats
constexpr double kLine = 64;           // bytes; the state of a row takes one

// Per lookup.
struct Bytes {
  double rows, arrays;
};

// Bytes per second of copying arrays, read plus written.
double CopyRate(ThreadPool& pool, const AlignedBuffer& from, AlignedBuffer* to) {
  const double start = SystemClock().MonotonicSeconds();
  pool.ParallelRanges(from.size(), [&](int, size_t begin, size_t end) {
    std::copy(from.data() + begin, from.data() + end, to->data() + begin);
  });
  return 2.0 * static_cast<double>(from.size() * sizeof(float)) /
         (SystemClock().MonotonicSeconds() - start);
}

struct Bench {
  ThreadPool& pool;
  EmbeddingShard& shard;
  RandomRowReader& reader;
  int repeats;
  AlignedBuffer from = AlignedBuffer(kCopied), to = AlignedBuffer(kCopied);
  uint64_t drawn = 0;

  // Never the same rows again: they could still be in a cache.
  int32_t Draw() {
    return static_cast<int32_t>(Philox::Draw(7, drawn++)[0] %
                                static_cast<uint64_t>(shard.rows.size()));
  }

  // `prepare` makes the input of one call of `work`, and is not measured.
  void Measure(const char* kernel, int64_t pooling, Bytes bytes,
               const std::function<void()>& prepare, const std::function<void()>& work) {
    const double lookups = static_cast<double>(kLookups / pooling * pooling);
    std::vector<double> rates, shares;
    for (int i = -1; i < repeats; ++i) {
      prepare();
      const double start = SystemClock().MonotonicSeconds();
      work();
      const double seconds = SystemClock().MonotonicSeconds() - start;
      const double least = lookups * (bytes.rows / reader.BytesPerSecond(pool) +
                                      bytes.arrays / CopyRate(pool, from, &to));
      if (i < 0) continue;
      rates.push_back(lookups * (bytes.rows + bytes.arrays) / seconds);
      shares.push_back(least / seconds);
    }
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    const double lowest = *least, highest = *most;
    fmt::print("| {} | {} | {} | {:.0f} + {:.0f} | {:.1f} | {:.0f} % | {:.0f} to {:.0f} % |\n",
               kernel, shard.dim(), pooling, bytes.rows, bytes.arrays, Median(rates) / 1e9,
               100 * Median(shares), 100 * lowest, 100 * highest);
    std::fflush(stdout);
  }
};

void MeasureLookup(Bench& bench, int64_t pooling) {
  const int64_t dim = bench.shard.dim(), bags = kLookups / pooling;
  constexpr int64_t kBags = 256;  // of one task, as of a virtual worker
  std::vector<int32_t> ids(static_cast<size_t>(bags * pooling)), offsets;
  for (int64_t bag = 0; bag <= bags; ++bag) offsets.push_back(static_cast<int32_t>(bag * pooling));
  AlignedBuffer out(static_cast<size_t>(bags * dim));
  const size_t per_bag = static_cast<size_t>(pooling);
  const double row = static_cast<double>(bench.shard.store->layout().row_bytes());
  const double pooled = static_cast<double>(dim) * sizeof(float);
  bench.Measure(
      "lookup", pooling,
      {.rows = row, .arrays = pooled / static_cast<double>(pooling) + sizeof(int32_t)},
      [&] { std::generate(ids.begin(), ids.end(), [&] { return bench.Draw(); }); },
      [&] {
        bench.pool.ParallelTasks(
            static_cast<size_t>((bags + kBags - 1) / kBags), [&](int, size_t task) {
              const size_t first = task * kBags;
              const size_t n = std::min<size_t>(kBags, static_cast<size_t>(bags) - first);
              float* to = out.data() + first * static_cast<size_t>(dim);
              const auto lookups = std::span(ids).subspan(first * per_bag, n * per_bag);
              const RowSlots& rows = bench.shard.store->slots();
              if (pooling == 1) {
                GatherRows(rows, lookups, to);
              } else {
                PoolRows(rows, ids.data(), std::span(offsets).subspan(first, n + 1), to);
              }
            });
      });
}

// Runs of sorted lookups, one for each task, that end where a row ends.
std::vector<std::span<const Lookup>> RunsOf(std::span<const Lookup> lookups) {
  constexpr size_t kRun = 1024;
  std::vector<std::span<const Lookup>> runs;
  while (!lookups.empty()) {
    size_t n = std::min(kRun, lookups.size());
    while (n < lookups.size() && RowOf(lookups[n]) == RowOf(lookups[n - 1])) ++n;
    runs.push_back(lookups.first(n));
    lookups = lookups.subspan(n);
  }
  return runs;
}

void MeasureUpdate(Bench& bench, int64_t pooling) {
  const int64_t dim = bench.shard.dim(), samples = kLookups / pooling;
  const SparseOptimizerOptions options{.type = SparseOptimizerType::kRowWiseAdagrad};
  AlignedBuffer gradients(static_cast<size_t>(samples * dim));
  std::vector<Lookup> lookups, scratch;
  // Of a batch of the usual eight.
  std::vector<uint16_t> virtual_worker;
  for (int64_t i = 0; i < samples; ++i)
    virtual_worker.push_back(static_cast<uint16_t>(i * 8 / samples));
  std::vector<std::span<const Lookup>> runs;
  const double row = static_cast<double>(bench.shard.store->layout().row_bytes());
  const double gradient = static_cast<double>(dim) * sizeof(float);
  // Rows and their states are read and written.
  bench.Measure(
      "update", pooling,
      {.rows = 2 * (row + kLine),
       .arrays = gradient / static_cast<double>(pooling) + sizeof(Lookup)},
      [&] {
        lookups.clear();
        for (int64_t i = 0; i < samples * pooling; ++i)
          lookups.push_back(
              MakeLookup(static_cast<uint32_t>(bench.Draw()), static_cast<uint32_t>(i / pooling)));
        SortByRow(&lookups, &scratch, bench.shard.rows.size());
        runs = RunsOf(lookups);
      },
      [&] {
        bench.pool.ParallelTasks(runs.size(), [&](int, size_t i) {
          ApplySparse(options, {.learning_rate = 0.01},
                      {runs[i], gradients.data(), virtual_worker.data()}, nullptr, 0, &bench.shard);
        });
      });
}

int Main(int argc, char** argv) {
  bench::Options command_line("Embedding kernels against the bandwidth of random rows");
  int64_t table_mib = 2048;
  std::string type = "fp32";
  int threads = UsableCpus(ReadCpuBudget()), repeats = 9;
  command_line.AddInRange("--table-mib", &table_mib, 1, 1 << 20);
  command_line.Add("--rows", &type, "fp32, fp16 or bf16");
  command_line.AddPositive("--threads", &threads);
  command_line.AddInRange("--repeats", &repeats, 1, 1000);
  command_line.ParseOrExit(argc, argv);
  ThreadPool pool(threads);
  fmt::print("{}, {} threads, tables of {} MiB of {}\n\n", SelectIsa("auto"), pool.num_threads(),
             table_mib, type);
  fmt::print(
      "| kernel | D | pooling factor | bytes per lookup: rows + arrays | GB/s | of the limits | "
      "range |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const int64_t dim : {16, 64, 128}) {
    const FloatType row_type = ParseFloatType(type);
    const int64_t row_bytes =
        static_cast<int64_t>(EncodedBytes(row_type, static_cast<size_t>(dim)));
    EmbeddingShard shard(
        {.name = "table", .num_embeddings = (table_mib << 20) / row_bytes, .embedding_dim = dim},
        {0, {0, 1}, 0, 0}, row_type, {.type = SparseOptimizerType::kRowWiseAdagrad},
        InitialValues::kZero, 1);
    const RowSlots& slots = shard.store->slots();
    RandomRowReader reader({reinterpret_cast<const float*>(slots.weights),
                            static_cast<size_t>(shard.rows.size() * row_bytes) / sizeof(float)},
                           row_bytes / static_cast<int64_t>(sizeof(float)));
    Bench bench{pool, shard, reader, repeats};
    for (const int64_t pooling : {1, 20, 100}) MeasureLookup(bench, pooling);
    for (const int64_t pooling : {1, 20, 100}) MeasureUpdate(bench, pooling);
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
