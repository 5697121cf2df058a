// Samples per second of whole training steps on a GPU, from batches in the host's memory, and the
// time of each phase beside the least that the memory's bandwidth and the matrix units allow, both
// measured in the same run. Random weights and ids; ids follow a power law.
//
//   cuda_step_bench --model dlrm --precision bf16 --batch 8192 16384 32768 65536 --json FILE

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/philox.h"
#include "renzan/cuda/dense_engine.h"
#include "renzan/cuda/embedding_engine.h"
#include "renzan/cuda/load.h"

namespace renzan {
namespace {

using cuda::Check;
using Json = nlohmann::ordered_json;

constexpr int kTables = 26;
constexpr int64_t kDense = 13;
constexpr int kBatches = 4;  // different ones, in turn

struct Flags {
  std::string model = "dlrm", precision = "bf16", json;
  std::vector<int64_t> batches = {8192, 16384, 32768, 65536};
  int64_t rows = 1000000;  // of each table
  int virtual_workers = 8;
  int steps = 50;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Criteo Terabyte's DLRM (Naumov et al., 2019) and MLPerf's DLRM-DCNv2.
DeviceModelOptions OptionsOf(const Flags& flags, int64_t batch) {
  DeviceModelOptions options;
  ModelOptions& model = options.model;
  model.type = flags.model;
  model.num_dense = kDense;
  model.embedding_dim = 128;
  model.sizes.bottom_mlp = {512, 256};
  model.sizes.top_mlp = {1024, 1024, 512, 256};
  model.sizes.cross_layers = 3;
  model.sizes.cross_rank = 512;
  model.precision = flags.precision == "bf16" ? Precision::kBFloat16 : Precision::kFloat32;
  options.tf32 = flags.precision == "tf32";
  const bool dcn = flags.model == "dlrm_dcnv2";
  options.sparse.type = dcn ? SparseOptimizerType::kRowWiseAdagrad : SparseOptimizerType::kSgd;
  options.dense.type = dcn ? DenseOptimizerType::kAdagrad : DenseOptimizerType::kSgd;
  options.virtual_workers = options.own_virtual_workers = flags.virtual_workers;
  options.samples = batch / flags.virtual_workers;
  for (int t = 0; t < kTables; ++t) {
    model.tables.push_back({.name = fmt::format("c{}", t), .dim = model.embedding_dim});
    options.tables.push_back({.rows = flags.rows,
                              .dim = model.embedding_dim,
                              .state_width = dcn ? 1 : 0,
                              .first_column = t * model.embedding_dim,
                              .block_begin = {0, flags.rows}});
  }
  return options;
}

struct HostBatch {
  std::vector<float> dense, labels;
  std::vector<std::vector<int32_t>> rows;

  DeviceBatch View() const {
    DeviceBatch view = {.dense = dense, .labels = labels, .pooled = {}};
    for (const auto& of_table : rows) view.rows.push_back(of_table);
    view.offsets.resize(rows.size());
    return view;
  }
};

HostBatch RandomBatch(uint64_t seed, int64_t samples, int64_t rows) {
  HostBatch batch;
  batch.rows.resize(kTables);
  for (int64_t s = 0; s < samples; ++s) {
    const uint64_t sample = static_cast<uint64_t>(s);
    batch.labels.push_back(static_cast<float>(Philox::Draw(seed, sample, 0)[0] & 1));
    for (int64_t d = 0; d < kDense; ++d)
      batch.dense.push_back(Philox::Uniform(Philox::Draw(seed, sample, 100 + d)[0]));
    for (int t = 0; t < kTables; ++t) {
      const double u = Philox::Draw(seed, sample, 1 + t)[0] * 0x1.0p-32;
      // Density ~ id^(-2/3): some ids are much more frequent than others.
      const double id = u * u * u * static_cast<double>(rows);
      batch.rows[static_cast<size_t>(t)].push_back(static_cast<int32_t>(id));
    }
  }
  return batch;
}

std::vector<HostBatch> RandomBatches(int64_t samples, int64_t rows) {
  std::vector<HostBatch> batches;
  for (int i = 0; i < kBatches; ++i)
    batches.push_back(RandomBatch(static_cast<uint64_t>(i), samples, rows));
  return batches;
}

std::vector<float> InitialParameters(const DeviceModelOptions& options) {
  const std::unique_ptr<Model> model = MakeModel(options.model);
  std::vector<float> parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(1, parameters);
  return parameters;
}

template <class SetRows>
void FillTables(const DeviceModelOptions& options, const SetRows& set_rows) {
  constexpr int64_t kPiece = 1 << 16;
  const int64_t dim = options.model.embedding_dim;
  // Page-locked: gigabytes are copied.
  const size_t values = static_cast<size_t>(kPiece * dim);
  const cuda::PinnedMemory pinned(values * sizeof(float));
  const std::span<float> weights(pinned.as<float>(), values);
  const std::vector<float> states(static_cast<size_t>(kPiece * options.tables[0].state_width));
  for (size_t i = 0; i < values; ++i)
    weights[i] = (Philox::Uniform(Philox::Draw(3, i)[0]) - 0.5f) * 0.02f;
  for (size_t t = 0; t < options.tables.size(); ++t)
    for (int64_t first = 0; first < options.tables[t].rows; first += kPiece) {
      const int64_t n = std::min(kPiece, options.tables[t].rows - first);
      set_rows(t, first, std::span<const float>(weights).first(static_cast<size_t>(n * dim)),
               std::span(states).first(static_cast<size_t>(n) * states.size() / kPiece));
    }
}

// Whole steps as in training: the next one begins before one is finished, and its batch is copied
// meanwhile.
struct Run {
  double samples_per_second = 0;
  int64_t bytes = 0;  // of the GPU's memory that are taken
};

Run TrainSteps(const Flags& flags, const DeviceModelOptions& options,
               std::span<const HostBatch> batches) {
  const std::unique_ptr<DeviceModel> model = MakeDeviceModel(options);
  model->SetParameters(InitialParameters(options));
  FillTables(options, [&](auto... rows) { model->SetRows(rows...); });
  std::vector<float> logits(static_cast<size_t>(options.own_samples()));
  int step = 0;
  const auto one_by_one = [](size_t n, FunctionRef<void(size_t)> task) {
    for (size_t i = 0; i < n; ++i) task(i);
  };
  model->Stage(batches[0].View(), one_by_one);
  const auto run = [&](int steps) {
    const double start = SystemClock().MonotonicSeconds();
    for (const int end = step + steps; step < end; ++step) {
      model->BeginStep(options.own_samples(),
                       {.sparse_learning_rate = 0.01, .dense_learning_rate = 0.01, .step = step});
      if (step > 0) model->Finish(logits);
      model->Stage(batches[static_cast<size_t>((step + 1) % kBatches)].View(), one_by_one);
    }
    return (SystemClock().MonotonicSeconds() - start) / steps;
  };
  run(6);
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 5; ++repeat) seconds.push_back(run(flags.steps / 5));
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return {static_cast<double>(options.own_samples()) / Median(seconds),
          static_cast<int64_t>(total - free)};
}

struct Limits {
  double bytes_per_second = 0, flops = 0;
};

double EventSeconds(const cuda::Stream& stream, int repeats, const std::function<void()>& launch) {
  cudaEvent_t begin, end;
  Check(cudaEventCreate(&begin), "timing");
  Check(cudaEventCreate(&end), "timing");
  std::vector<double> seconds;
  for (int i = 0; i < repeats + 3; ++i) {
    Check(cudaEventRecord(begin, stream.get()), "timing");
    launch();
    Check(cudaEventRecord(end, stream.get()), "timing");
    Check(cudaEventSynchronize(end), "timing");
    float ms = 0;
    Check(cudaEventElapsedTime(&ms, begin, end), "timing");
    if (i >= 3) seconds.push_back(ms / 1e3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return Median(seconds);
}

Limits MeasureLimits(const Flags& flags) {
  const cuda::Stream stream;
  constexpr size_t kBytes = size_t{2} << 30;
  Limits limits;
  {
    const cuda::DeviceMemory from(kBytes), to(kBytes);
    limits.bytes_per_second = 2.0 * kBytes / EventSeconds(stream, 15, [&] {
                                Check(cudaMemcpyAsync(to.as<void>(), from.as<void>(), kBytes,
                                                      cudaMemcpyDeviceToDevice, stream.get()),
                                      "copying");
                              });
  }
  constexpr int64_t n = 8192;
  const Precision precision =
      flags.precision == "bf16" ? Precision::kBFloat16 : Precision::kFloat32;
  const cuda::ProductLibrary library({.precision = precision, .tf32 = flags.precision == "tf32"});
  const cuda::Product product(library, {.a = {n, n, n, 0}, .b = {n, n, n, 0}, .out = {n, n, n, 0}});
  // Zeros would be faster than numbers.
  const size_t bytes = static_cast<size_t>(n * n * cuda::BytesPerValue(precision));
  std::vector<uint16_t> random(bytes / 2);
  for (size_t i = 0; i < random.size(); ++i)
    random[i] = static_cast<uint16_t>(0x3f00 | (Philox::Draw(5, i / 4)[i % 4] & 0x80ff));
  const cuda::DeviceMemory a(bytes), b(bytes), out(bytes);
  cuda::CopyToDevice(random.data(), bytes, a.as<void>(), stream);
  cuda::CopyToDevice(random.data(), bytes, b.as<void>(), stream);
  limits.flops = 2.0 * n * n * n / EventSeconds(stream, 10, [&] {
                   product.Run(a.as<void>(), b.as<void>(), nullptr, out.as<void>(), stream);
                 });
  return limits;
}

struct Phase {
  std::string name;
  double seconds = 0, least = 0;
};

std::vector<Phase> MeasurePhases(const DeviceModelOptions& options,
                                 std::span<const HostBatch> batches, const Limits& limits) {
  const cuda::Stream stream;
  cuda::DenseEngine dense(options, stream);
  const int64_t features = dense.model().features_columns();
  cuda::EmbeddingEngine embeddings(options, features, options.model.embedding_dim, stream);
  const std::vector<float> parameters = InitialParameters(options);
  cuda::CopyToDevice(parameters.data(), parameters.size() * sizeof(float), dense.parameters(),
                     stream);
  FillTables(options, [&](auto... rows) { embeddings.SetRows(rows...); });
  const int64_t samples = options.own_samples(), lookups = samples * kTables;
  embeddings.Reserve(lookups);

  std::vector<cuda::DeviceMemory> rows, inputs, labels;
  for (const HostBatch& batch : batches) {
    rows.emplace_back(static_cast<size_t>(lookups) * sizeof(int32_t));
    size_t at = 0;
    for (const auto& of_table : batch.rows) {
      cuda::CopyToDevice(of_table.data(), of_table.size() * sizeof(int32_t),
                         rows.back().as<int32_t>() + at, stream);
      at += of_table.size();
    }
    inputs.emplace_back(batch.dense.size() * sizeof(float));
    cuda::CopyToDevice(batch.dense.data(), inputs.back().bytes(), inputs.back().as<void>(), stream);
    labels.emplace_back(batch.labels.size() * sizeof(float));
    cuda::CopyToDevice(batch.labels.data(), labels.back().bytes(), labels.back().as<void>(),
                       stream);
  }
  cuda::SparseStepOnDevice sparse = {.lr = 0.01f, .epsilon = 1e-8f};
  cuda::DenseStep dense_step = {
      .lr = 0.01f, .epsilon = 1e-8f, .adam = AdamFactors(0.01, 1e-8, 0.9, 0.999, 0)};
  cuda::DeviceMemory steps(1024);
  cuda::CopyToDevice(&sparse, sizeof(sparse), steps.as<void>(), stream);
  cuda::CopyToDevice(&dense_step, sizeof(dense_step), steps.as<std::byte>() + 256, stream);
  int32_t* const finite = reinterpret_cast<int32_t*>(steps.as<std::byte>() + 512);
  stream.Synchronize();

  size_t turn = 0;
  const auto lookups_now = [&] {
    return cuda::DeviceLookups{.rows = rows[turn % kBatches].as<int32_t>(), .num_lookups = lookups};
  };
  const double value = cuda::BytesPerValue(options.model.precision);
  const double row = 128.0 * sizeof(float), pooled = 128.0 * value;
  const double flops = dense.model().FlopsPerSample() * static_cast<double>(samples);
  const double size = static_cast<double>(dense.model().layout().size());
  const auto bytes = [&](double n) { return n / limits.bytes_per_second; };
  std::vector<Phase> phases;
  const auto add = [&](const char* name, double least, const std::function<void()>& launch) {
    phases.push_back({name,
                      EventSeconds(stream, 12,
                                   [&] {
                                     ++turn;
                                     launch();
                                   }),
                      least});
  };
  const double n = static_cast<double>(lookups);
  add("lookup", bytes(n * (row + pooled)),
      [&] { embeddings.Pool(lookups_now(), dense.features(), stream); });
  add("sort lookups", bytes(n * 2 * 8 * 4), [&] { embeddings.Sort(lookups_now(), stream); });
  add("pack weights", bytes(size * (4 + value)), [&] { dense.PackWeights(); });
  add("forward", flops / 3 / limits.flops, [&] {
    dense.ForwardDense(inputs[turn % kBatches].as<float>(), nullptr);
    dense.ForwardFeatures(nullptr);
  });
  add("backward", flops * 2 / 3 / limits.flops, [&] {
    dense.BackwardToFeatures(labels[turn % kBatches].as<float>(), samples);
    dense.BackwardToDense();
  });
  add("reduce and update dense", bytes(size * 4 * (options.own_virtual_workers + 4)), [&] {
    dense.Update(reinterpret_cast<const cuda::DenseStep*>(steps.as<std::byte>() + 256), finite);
  });
  // Rows that several samples look up are read and written only once, which is not accounted for
  // here.
  add("sparse update (with sort)", bytes(n * (pooled + 2 * row)), [&] {
    embeddings.Sort(lookups_now(), stream);
    embeddings.Update(steps.as<cuda::SparseStepOnDevice>(), lookups_now(), dense.d_features(),
                      finite, stream);
  });
  return phases;
}

int Main(int argc, char** argv) {
  Flags flags;
  bench::Options command_line("Training steps on a GPU");
  command_line.AddOneOf("--model", &flags.model, {"dlrm", "dlrm_dcnv2"});
  command_line.AddOneOf("--precision", &flags.precision, {"fp32", "tf32", "bf16"});
  command_line.Add("--batch", &flags.batches);
  command_line.Add("--rows", &flags.rows);
  command_line.Add("--virtual-workers", &flags.virtual_workers);
  command_line.Add("--steps", &flags.steps);
  command_line.Add("--json", &flags.json);
  command_line.ParseOrExit(argc, argv);
  DeviceFacts facts;
  try {
    facts = FactsOfDevice(0);
  } catch (const Error& error) {
    fmt::print(stderr, "skipped: {}\n", error.what());
    return 77;
  }
  const Limits limits = MeasureLimits(flags);
  fmt::print("{}: copying {:.0f} GB/s, products in {} {:.0f} TFLOP/s\n", facts.name,
             limits.bytes_per_second / 1e9, flags.precision, limits.flops / 1e12);
  Json out = {{"device", facts.name},
              {"model", flags.model},
              {"precision", flags.precision},
              {"copy_bytes_per_second", limits.bytes_per_second},
              {"flops", limits.flops}};
  for (const int64_t batch : flags.batches) {
    const DeviceModelOptions options = OptionsOf(flags, batch);
    const std::vector<HostBatch> batches = RandomBatches(batch, flags.rows);
    const Run run = TrainSteps(flags, options, batches);
    const double rate = run.samples_per_second;
    const DeviceBytes estimate = EstimateDeviceBytes(options);
    const int64_t estimated = estimate.tables + estimate.rest;
    fmt::print(
        "{} {} batch {}: {:.2f} M samples/s, {:.3f} ms; {:.2f} GB of memory, estimated {:.2f}\n",
        flags.model, flags.precision, batch, rate / 1e6, 1e3 * static_cast<double>(batch) / rate,
        static_cast<double>(run.bytes) / 1e9, static_cast<double>(estimated) / 1e9);
    Json of_batch = {{"batch", batch},
                     {"samples_per_second", rate},
                     {"bytes", run.bytes},
                     {"estimated_bytes", estimated}};
    for (const Phase& phase : MeasurePhases(options, batches, limits)) {
      fmt::print("  {:26} {:8.3f} ms, at least {:.3f} ({:.0f} %)\n", phase.name,
                 phase.seconds * 1e3, phase.least * 1e3, 100 * phase.least / phase.seconds);
      of_batch["phases"].push_back(
          {{"phase", phase.name}, {"seconds", phase.seconds}, {"least_seconds", phase.least}});
    }
    std::fflush(stdout);
    out["batches"].push_back(of_batch);
    if (!flags.json.empty()) WriteFileAtomically(flags.json, out.dump(2) + "\n");
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  try {
    return renzan::Main(argc, argv);
  } catch (const renzan::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
}
