// Measures what verifying block checksums costs when reading a dataset: shuffled batches with
// Criteo's features (13 dense, 26 ids) from the page cache, where checksums matter most,
// alternating epochs with and without them. Each epoch reopens the dataset, so that it verifies
// every block once; in training only the first epoch does. Then the rows per second of several
// readers, as training on a GPU uses.
//
//   loader_bench [--rows 1000000] [--batch 2048] [--repeats 9] [--directory DIR]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/sample_order.h"
#include "renzan/data/synth/synth.h"

namespace renzan {
namespace {

// Reads one epoch; returns nanoseconds per row.
double ReadEpoch(const std::string& path, int64_t batch_rows, bool verify_blocks) {
  const auto start = std::chrono::steady_clock::now();
  const Dataset dataset(path, {.verify_blocks = verify_blocks});
  const SampleOrder order(1, 0, 0, dataset.num_rows());
  Batch batch;
  std::vector<int64_t> rows;
  for (int64_t begin = 0; begin < dataset.num_rows(); begin += batch_rows) {
    rows.clear();
    order.AppendRows(begin, std::min(batch_rows, dataset.num_rows() - begin), &rows);
    dataset.Read(rows, &batch);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(dataset.num_rows());
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const std::string& path, int64_t batch_rows, int repeats) {
  ReadEpoch(path, batch_rows, true);  // fills the page cache
  std::vector<double> with, without, ratio;
  for (int i = 0; i < repeats; ++i) {
    with.push_back(ReadEpoch(path, batch_rows, true));
    without.push_back(ReadEpoch(path, batch_rows, false));
    ratio.push_back(with.back() / without.back());
  }
  const auto print = [](const char* what, double ns) {
    fmt::print("{:<24} {:>8.1f} ns/row {:>12.0f} rows/s\n", what, ns, 1e9 / ns);
  };
  print("with checksums", Median(with));
  print("without", Median(without));
  fmt::print(
      "reading takes {:.3f} times as long with checksums; training at 100,000 rows/s spends "
      "{:.2f} % of one core on them, in its first epoch\n",
      Median(ratio), (Median(with) - Median(without)) * 1e-9 * 1e5 * 100);
}

// Rows per second of an epoch, of batches that are thrown away.
double LoaderRate(const Dataset& dataset, int64_t batch_rows, int readers) {
  const int64_t steps = dataset.num_rows() / batch_rows;
  const double start = SystemClock().MonotonicSeconds();
  BatchLoader loader(dataset, {.seed = 1,
                               .row_end = dataset.num_rows(),
                               .global_batch = batch_rows,
                               .slice_end = batch_rows,
                               .num_steps = steps,
                               .readers = readers});
  for (int64_t step = 0; step < steps; ++step) loader.Next();
  return static_cast<double>(steps * batch_rows) / (SystemClock().MonotonicSeconds() - start);
}

void MeasureReaders(const std::string& path, int64_t batch_rows, int repeats) {
  const Dataset dataset(path);
  const int cpus = UsableCpus(ReadCpuBudget());
  LoaderRate(dataset, batch_rows, cpus);  // verifies the blocks
  for (int readers = 1; readers <= cpus; readers *= 2) {
    std::vector<double> rates;
    for (int i = 0; i < repeats; ++i) rates.push_back(LoaderRate(dataset, batch_rows, readers));
    fmt::print("{:>2} readers {:>34.0f} rows/s\n", readers, Median(rates));
  }
}

int Main(int argc, char** argv) {
  int64_t rows = 1'000'000, batch = 2048;
  int repeats = 9;
  std::string directory;
  bench::Options command_line("Measure what block checksums cost when reading a dataset");
  command_line.AddPositive("--rows", &rows, "Rows of the dataset");
  command_line.AddPositive("--batch", &batch, "Rows in one batch");
  command_line.AddPositive("--repeats", &repeats, "Epochs of each kind");
  command_line.Add("--directory", &directory, "Where to put the dataset [a temporary one]");
  command_line.ParseOrExit(argc, argv);
  try {
    const TemporaryDirectory temporary;
    SynthOptions options;
    options.rows = rows;
    options.format = "dataset";
    options.output = (directory.empty() ? temporary.path() : directory) + "/loader_bench";
    Synthesize(options);
    Measure(options.output, batch, repeats);
    MeasureReaders(options.output, batch, repeats);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
