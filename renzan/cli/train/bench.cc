// renzan bench machine, renzan bench train CONFIG

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/train/bench_peers.h"
#include "renzan/cli/train/workers.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/batch_loader.h"
#include "renzan/nn/isa.h"
#include "renzan/planning/device_options.h"
#include "renzan/planning/make_plan.h"
#include "renzan/roofline/int8_rate.h"
#include "renzan/roofline/machine_limits.h"
#include "renzan/roofline/phase_times.h"
#include "renzan/roofline/step_costs.h"
#include "renzan/run/agreement.h"
#include "renzan/run/count_ids.h"
#include "renzan/run/loop.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/negatives.h"
#include "renzan/run_spec/schedule.h"
#include "renzan/step/make_step.h"

namespace renzan {
namespace {

// Rows are read from a table that no cache holds.
constexpr int64_t kTableBytes = int64_t{1} << 29;

struct MachineFlags {
  int workers = 1, threads = 0;
  std::string backend = "auto";
  bool json = false;
  bool exchange_only = false;
  bool peers = false;
  std::vector<std::string> hosts;  // of peers
};

void MeasureWorker(ThreadPool& pool, nlohmann::ordered_json* out, Table* table) {
  const double float32 = MeasureMatrixFlops(pool, Precision::kFloat32);
  const std::string bfloat16_isa = SelectIsa("auto", Precision::kBFloat16);
  const double bfloat16 = MeasureMatrixFlops(pool, Precision::kBFloat16);
  const Int8Rate int8 = MeasureInt8Rate(pool);
  const double stream = MeasureStreamBytes(pool);
  const double rows64 = MeasureRandomRowBytes(pool, 64, kTableBytes);
  const double rows512 = MeasureRandomRowBytes(pool, 512, kTableBytes);
  out->update({{"matrix_float32_flops", float32},
               {"matrix_bfloat16_flops", bfloat16},
               {"matrix_bfloat16_isa", bfloat16_isa},
               {"matrix_int8_ops", int8.ops_per_second},
               {"matrix_int8_isa", int8.isa},
               {"stream_bytes_per_second", stream},
               {"random_rows_64_bytes_per_second", rows64},
               {"random_rows_512_bytes_per_second", rows512}});
  table->Add({"float32 matrix products", fmt::format("{:.0f} GFLOP/s", float32 / 1e9)});
  table->Add({fmt::format("bfloat16 matrix products ({})", bfloat16_isa),
              fmt::format("{:.0f} GFLOP/s", bfloat16 / 1e9)});
  if (int8.ops_per_second > 0)
    table->Add({fmt::format("int8 products ({})", int8.isa),
                fmt::format("{:.0f} Gop/s", int8.ops_per_second / 1e9)});
  table->Add({"copying memory, read + written", fmt::format("{:.1f} GB/s", stream / 1e9)});
  table->Add({"random rows of 64 bytes", fmt::format("{:.1f} GB/s", rows64 / 1e9)});
  table->Add({"random rows of 512 bytes", fmt::format("{:.1f} GB/s", rows512 / 1e9)});
}

void MeasureExchange(Communicator& comm, nlohmann::ordered_json* out, Table* table) {
  if (comm.world_size() == 1) return;
  for (const int64_t bytes : {int64_t{64}, int64_t{256} << 10, int64_t{4} << 20}) {
    const double seconds = MeasureAllToAllSeconds(comm, bytes);
    (*out)["all_to_all_seconds"][std::to_string(bytes)] = seconds;
    table->Add({fmt::format("all-to-all of {} bytes to each peer ({})", bytes, comm.backend()),
                fmt::format("{:.1f} µs", seconds * 1e6)});
  }
}

void BenchMachine(const MachineFlags& flags, Communicator& comm, int threads) {
  const std::string isa = SelectIsa("auto");
  ThreadPool pool(threads);
  nlohmann::ordered_json out = {
      {"isa", isa}, {"workers", comm.world_size()}, {"threads_per_worker", threads}};
  Table table({{"limit of one worker"}, {"measured", kRight}});
  // One worker at a time would see more than its share of the machine.
  comm.Barrier();
  if (!flags.exchange_only) MeasureWorker(pool, &out, &table);
  MeasureExchange(comm, &out, &table);
  if (comm.rank() != 0) return;
  if (flags.json) {
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("{} of {}, {}\n{}", Counted(comm.world_size(), "worker"), Counted(threads, "thread"),
               isa, table.Text());
  }
}

struct TrainBenchFlags {
  std::string config_path;
  std::vector<std::string> overrides;
  int64_t steps = 50;
  bool json = false;
};

// Measured steps, after a few warm-up steps.
struct TracedSteps {
  Trace trace;
  std::vector<Batch> slices;  // that some of them trained on
  MovedRows moved;
  double seconds = 0, waiting_seconds = 0;  // in total, and spent waiting for batches
};

// All rows that no sample looks up, where they move, too, take the steps that they have missed. The
// measured steps begin and end with that, so that they include all of their work.
std::vector<int64_t> MovingRowsOf(Step& model) {
  if (!IdleRowsMove(model.spec().sparse_optimizer)) return {};
  return model.Updated().embeddings().MovingRows();
}

TracedSteps RunSteps(const TrainConfig& config, const Split& train, int64_t steps, int threads,
                     Step& model) {
  constexpr int64_t kWarmUp = 5, kKeptSlices = 4;
  BatchLoader loader(*train.dataset,
                     {.seed = config.seed,
                      .row_begin = train.rows.begin,
                      .row_end = train.rows.end,
                      .global_batch = config.training.batch_size,
                      .slice_begin = model.slice_begin(),
                      .slice_end = model.slice_end(),
                      .num_steps = kWarmUp + steps,
                      .shuffle = {.enabled = config.data.shuffle},
                      .readers = model.batch_readers()},
                     DrawsNegatives(model.spec(), 0, model.slice_begin()));
  std::vector<OutputMetrics> metrics(model.spec().loss.tasks.size() * static_cast<size_t>(threads));
  TracedSteps traced;
  const Clock& clock = SystemClock();
  double start = 0;
  std::vector<int64_t> moving;  // when the measured steps begin
  const Batch* slice = &loader.Next();
  for (int64_t step = 0; step < kWarmUp + steps; ++step) {
    if (step < kKeptSlices) traced.slices.push_back(*slice);
    const double before = clock.MonotonicSeconds();
    if (step == kWarmUp) {
      moving = MovingRowsOf(model);
      start = clock.MonotonicSeconds();
      StartTrace();
    }
    const Batch* const next = step + 1 < kWarmUp + steps ? &loader.Next() : nullptr;
    if (step >= kWarmUp) traced.waiting_seconds += clock.MonotonicSeconds() - before;
    model.Run({.slice = *slice, .step = step, .metrics = metrics, .next = next});
    slice = next;
  }
  model.Await();
  const std::vector<int64_t> moving_at_end = MovingRowsOf(model);
  traced.seconds = clock.MonotonicSeconds() - start;
  traced.trace = StopTrace();
  for (size_t i = 0; i < moving.size(); ++i)
    traced.moved.rows.push_back(static_cast<double>(moving[i] + moving_at_end[i]) / 2);
  const int64_t most = static_cast<int64_t>(IdleRows::kMostSteps);
  traced.moved.interval =
      static_cast<double>(steps) / static_cast<double>((steps + most - 1) / most);
  return traced;
}

struct Throughput {
  double samples_per_second = 0, waiting_seconds = 0;  // waiting for a batch, per step
};

// Lower bounds for the times of a step on CPUs, and the rates they are computed from.
struct Roofline {
  std::vector<PhaseCost> costs;
  MachineLimits limits;
};

std::optional<double> LeastOf(const PhaseTime& phase, const Roofline& roofline) {
  for (const PhaseCost& cost : roofline.costs)
    if (cost.phase == phase.name) return LeastSeconds(cost, roofline.limits);
  return std::nullopt;
}

void PrintPhases(const StepTimes& times, const Throughput& throughput,
                 const std::optional<Roofline>& roofline, bool json) {
  Table table(
      {{"phase"}, {"ms", kRight}, {"of step", kRight}, {"least ms", kRight}, {"reached", kRight}});
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  double least_of_all = 0;
  const auto add = [&](const PhaseTime& phase, std::optional<double> least) {
    table.Add(
        {phase.name, fmt::format("{:.3f}", phase.seconds * 1e3),
         fmt::format("{:.1f} %", 100 * phase.seconds / times.step),
         least ? fmt::format("{:.3f}", *least * 1e3) : "",
         least && phase.seconds > 0 ? fmt::format("{:.0f} %", 100 * *least / phase.seconds) : ""});
  };
  for (const PhaseTime& phase : times.phases) {
    std::optional<double> least;
    if (roofline) least = LeastOf(phase, *roofline);
    least_of_all += least.value_or(0);
    add(phase, least);
    phases.push_back({{"phase", phase.name}, {"seconds", phase.seconds}});
    if (least) phases.back()["least_seconds"] = *least;
  }
  add({"step", times.step}, roofline ? std::optional(least_of_all) : std::nullopt);
  if (json) {
    nlohmann::ordered_json out = {{"samples_per_second", throughput.samples_per_second},
                                  {"waiting_seconds", throughput.waiting_seconds},
                                  {"step_seconds", times.step}};
    if (roofline) {
      double flops = 0;
      for (const PhaseCost& cost : roofline->costs) flops += cost.flops;
      out["least_seconds"] = least_of_all;
      out["product_seconds"] = flops / roofline->limits.matrix_flops;
    }
    out["phases"] = phases;
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("{}{:.0f} samples/s; between steps, {:.3f} ms of waiting for a batch.", table.Text(),
             throughput.samples_per_second, throughput.waiting_seconds * 1e3);
  if (roofline)
    fmt::print(
        " Least times: at {:.0f} GFLOP/s of matrix products, {:.1f} GB/s of copying and {:.1f} "
        "GB/s of random rows, measured now; more than 100 % is due to caches.",
        roofline->limits.matrix_flops / 1e9, roofline->limits.stream_bytes / 1e9,
        roofline->limits.row_bytes / 1e9);
  fmt::print("\n");
}

void BenchTrain(const TrainBenchFlags& flags, TrainConfig config, Communicator& comm, int threads) {
  CheckSameRun(comm, config, FactsOfWorker(BuildId(), config, comm));
  const OpenedSplits splits = OpenSplits(config.data, config.features, comm);
  config.optimizer.schedule =
      ScheduleOfRun(config.optimizer.schedule, NumSteps(config, splits.train.rows.size()));
  const DatasetSchema& schema = splits.train.dataset->schema();
  std::vector<double> pooling_factors;
  RunWithHeartbeats(comm, [&] { pooling_factors = EstimatePoolingFactors(splits.train); });
  const RunSpec spec = MakeRunSpec(config, schema, pooling_factors);
  CheckTasks(config.training.loss, spec.model.outputs, schema);
  ThreadPool pool(PoolThreads(spec, comm.world_size(), threads));
  const ShardingPlan plan = AgreeOnPlan(spec, comm, threads);
  std::optional<ModelState> state;
  std::unique_ptr<Step> model;
  RunWithHeartbeats(comm, [&] {
    state.emplace(spec, plan, comm, pool);
    model = MakeStep(*state, comm, CountIds(spec, state->model(), splits.train, pool));
  });
  const TracedSteps traced =
      RunSteps(config, splits.train, flags.steps, pool.num_threads(), *model);
  std::optional<Roofline> roofline;
  if (config.device == "cpu")
    roofline.emplace().costs = CostsOfStep(*state, traced.slices, traced.moved);
  const Precision precision = spec.numerics.precision;
  model.reset();
  state.reset();
  if (roofline) {
    const int64_t row_bytes = (config.model.embedding_dim * 4 + 63) / 64 * 64;
    roofline->limits = {.matrix_flops = MeasureMatrixFlops(pool, precision),
                        .stream_bytes = MeasureStreamBytes(pool),
                        .row_bytes = MeasureRandomRowBytes(pool, row_bytes, kTableBytes)};
  }
  comm.Barrier();
  if (comm.rank() != 0) return;
  const double steps = static_cast<double>(flags.steps);
  const Throughput throughput = {
      .samples_per_second =
          static_cast<double>(config.training.batch_size) * steps / traced.seconds,
      .waiting_seconds = traced.waiting_seconds / steps};
  PrintPhases(TimesOfSteps(traced.trace), throughput, roofline, flags.json);
}

}  // namespace

void AddBenchVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb =
      app.add_subcommand("bench", "Measure this machine, and where a step's time goes");
  verb->require_subcommand(1);

  CLI::App* machine = verb->add_subcommand(
      "machine", "Rates of matrix products, memory and exchange: what limits training");
  const auto machine_flags = std::make_shared<MachineFlags>();
  machine->add_option("--workers", machine_flags->workers, "Workers that measure at the same time")
      ->check(AtLeast(1));
  CLI::Option* threads =
      machine->add_option("--threads", machine_flags->threads, "Threads per worker")
          ->check(AtLeast(1));
  CLI::Option* backend =
      machine->add_option("--backend", machine_flags->backend, "auto, local, gloo or mpi");
  machine->add_flag("--json", machine_flags->json, "Print JSON");
  CLI::Option* exchange =
      machine->add_flag("--exchange", machine_flags->exchange_only, "Only the exchange");
  CLI::Option* peers =
      machine
          ->add_flag("--peers", machine_flags->peers,
                     "Measure the exchange over each transport: Gloo, and those of Open MPI")
          ->excludes(exchange)
          ->excludes(threads)
          ->excludes(backend);
  machine
      ->add_option("--hosts", machine_flags->hosts,
                   "With --peers: between these machines, which mpirun must be able to reach")
      ->delimiter(',')
      ->needs(peers);
  machine->footer(
      "Examples:\n"
      "  renzan bench machine\n"
      "  renzan bench machine --workers 2 --backend gloo\n"
      "  renzan bench machine --peers --hosts node1,node2");
  machine->callback([machine_flags, &exit_status] {
    if (machine_flags->peers)
      return BenchPeers({.workers = std::max({machine_flags->workers, 2,
                                              static_cast<int>(machine_flags->hosts.size())}),
                         .hosts = machine_flags->hosts,
                         .json = machine_flags->json});
    exit_status = RunWorkers(
        {.workers = machine_flags->workers,
         .threads = machine_flags->threads,
         .backend = machine_flags->backend},
        [&](Communicator& comm, int threads) { BenchMachine(*machine_flags, comm, threads); });
  });

  CLI::App* train = verb->add_subcommand(
      "train",
      "The time of each phase of a training step, and the least that this machine could need");
  const auto flags = std::make_shared<TrainBenchFlags>();
  train->add_option("config", flags->config_path, "YAML configuration")->required();
  train->add_option("--set", flags->overrides, "Override one key: --set training.batch_size=4096")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  train->add_option("--steps", flags->steps, "Steps to measure")
      ->capture_default_str()
      ->check(AtLeast(1));
  train->add_flag("--json", flags->json, "Print JSON");
  train->footer(
      "Nothing is written. `renzan train --profile` shows single steps on a timeline.\n"
      "Example:\n"
      "  renzan bench train examples/quickstart.yaml --set threads=2");
  train->callback([flags, &exit_status] {
    TrainConfig config;
    ReadConfigFile(flags->config_path, flags->overrides,
                   [&](ConfigFields& fields) { config.Describe(fields); });
    if (config.data.train.path.empty())
      Fail(ErrorCode::kConfig, "{}: data.train.path is missing: name a dataset directory",
           flags->config_path);
    exit_status = RunWorkers(
        {.workers = NumWorkers(config, UsableCpus(ReadCpuBudget())),
         .threads = config.threads,
         .backend = config.comm.backend,
         .timeout_seconds = config.comm.timeout_seconds},
        [&](Communicator& comm, int threads) { BenchTrain(*flags, config, comm, threads); });
  });
}

}  // namespace renzan
