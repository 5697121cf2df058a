// Samples per second of a training step on data in memory, without disk and input pipeline. Prints
// the median and the best of several repeats, and compares them with the time of the dense layers
// alone at the matrix product speed measured on this machine.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/philox.h"
#include "renzan/comm/backends.h"
#include "renzan/nn/gemm.h"
#include "renzan/nn/isa.h"
#include "renzan/planning/make_plan.h"
#include "renzan/step/make_step.h"

namespace renzan {
namespace {

Batch RandomBatch(uint64_t seed, int64_t size, int64_t num_dense, int64_t tables, int64_t rows) {
  Batch batch;
  batch.size = size;
  batch.categorical.resize(static_cast<size_t>(tables));
  for (int64_t s = 0; s < size; ++s) {
    const uint64_t sample = static_cast<uint64_t>(s);
    batch.label.push_back(static_cast<float>(Philox::Draw(seed, sample, 0)[0] & 1));
    for (int64_t d = 0; d < num_dense; ++d)
      batch.dense.push_back(Philox::Uniform(Philox::Draw(seed, sample, 1000 + d)[0]));
    for (int64_t t = 0; t < tables; ++t)
      batch.categorical[static_cast<size_t>(t)].values.push_back(
          static_cast<int64_t>(Philox::Draw(seed, sample, 1 + t)[0] % static_cast<uint64_t>(rows)));
  }
  return batch;
}

// One thread, for a product of the size of the largest layers.
double MatmulFlops(Precision precision) {
  const int64_t n = 512;
  const BlockedMatrix a(n, n, precision);
  const RightOperand b(n, n, precision);
  BlockedMatrix c(n, n, precision);
  double best = 1e9;
  for (int i = 0; i < 30; ++i) {
    const double start = SystemClock().MonotonicSeconds();
    Gemm(a, b, {}, &c);
    best = std::min(best, SystemClock().MonotonicSeconds() - start);
  }
  return 2.0 * n * n * n / best;
}

int Main(int argc, char** argv) {
  TrainConfig config;
  int64_t rows = 100000, steps = 20;
  int threads = 2, repeats = 5;
  bench::Options command_line("One training step on data in memory");
  command_line.Add("--model", &config.model.type);
  command_line.Add("--batch", &config.training.batch_size);
  command_line.Add("--dim", &config.model.embedding_dim);
  command_line.Add("--bottom", &config.model.bottom_mlp);
  command_line.Add("--top", &config.model.top_mlp);
  command_line.Add("--sparse", &config.optimizer.sparse.type);
  command_line.Add("--wire", &config.comm.forward);
  command_line.Add("--isa", &config.numerics.isa);
  command_line.Add("--precision", &config.numerics.precision, "fp32 or bf16");
  command_line.Add("--rows", &rows, "rows of each of the 26 tables");
  command_line.Add("--threads", &threads);
  command_line.Add("--steps", &steps, "per repeat");
  command_line.Add("--repeats", &repeats);
  command_line.ParseOrExit(argc, argv);

  const std::string isa = SelectIsa(config.numerics.isa, PrecisionOf(config.numerics));
  constexpr int64_t kDense = 13, kTables = 26;
  DatasetSchema schema;
  for (int64_t d = 0; d < kDense; ++d) schema.dense.push_back(fmt::format("I{}", d + 1));
  for (int64_t t = 0; t < kTables; ++t)
    schema.categorical.push_back({fmt::format("C{}", t + 1), rows});
  const auto comm = MakeLocalCommunicator();
  ThreadPool pool(threads);
  const RunSpec spec = MakeRunSpec(config, schema, std::vector<double>(kTables, 1.0));
  ModelState state(spec, PlanOf(spec, Topology::OneHost(1), threads), *comm, pool);
  const std::unique_ptr<Step> model = MakeStep(state, *comm);
  std::vector<Batch> batches;
  for (uint64_t i = 0; i < 4; ++i)
    batches.push_back(RandomBatch(i, config.training.batch_size, kDense, kTables, rows));
  std::vector<OutputMetrics> metrics(static_cast<size_t>(threads));

  std::vector<double> rates;
  int64_t step = 0;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    const double start = SystemClock().MonotonicSeconds();
    for (int64_t i = 0; i < steps; ++i, ++step)
      model->Run({.slice = batches[static_cast<size_t>(step % 4)],
                  .step = step,
                  .metrics = metrics,
                  .next = &batches[static_cast<size_t>((step + 1) % 4)]});
    const double rate = static_cast<double>(steps * config.training.batch_size) /
                        (SystemClock().MonotonicSeconds() - start);
    if (repeat >= 0) rates.push_back(rate);
  }
  std::sort(rates.begin(), rates.end());
  const double median = rates[rates.size() / 2];
  // Forward and both gradients: 6 operations per parameter and sample.
  const double flops = 6.0 * static_cast<double>(state.model().layout().size());
  const double limit = MatmulFlops(state.model().options().precision) * threads / flops;
  fmt::print("isa {}  precision {}  threads {}  parameters {}\n", isa, config.numerics.precision,
             threads, state.model().layout().size());
  fmt::print(
      "samples/s: median {:.0f}  best {:.0f}  matrix products alone {:.0f}  share {:.0f} %\n",
      median, rates.back(), limit, 100.0 * median / limit);
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
