// renzan plan CONFIG

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "renzan/base/counted.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/base/memory_budget.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/backends.h"
#include "renzan/nn/isa.h"
#include "renzan/planning/disk_use.h"
#include "renzan/planning/make_plan.h"
#include "renzan/planning/plan_file.h"
#include "renzan/planning/plan_report.h"
#include "renzan/planning/plan_sweep.h"
#include "renzan/planning/topology_file.h"
#include "renzan/roofline/machine_limits.h"
#include "renzan/run/items_to_rank.h"
#include "renzan/run/left_out_rows.h"
#include "renzan/run/loop.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/parameter_groups.h"

namespace renzan {
namespace {

struct PlanFlags {
  std::string config_path, topology_path, output, backend, sweep, svg;
  std::vector<std::string> overrides;
  int workers = 0, threads = 0;
  bool json = false;
};

std::string Gib(double bytes) { return fmt::format("{:.2f}", bytes / 0x1p30); }
std::string Ms(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

// This machine, shared by its workers.
Topology MeasuredTopology(int workers, int threads, const TrainConfig& config) {
  Topology topology = Topology::OneHost(workers);
  // One worker at a time would see more than its share of the machine.
  ThreadPool pool(
      static_cast<int>(std::min<int64_t>(int64_t{workers} * threads, UsableCpus(ReadCpuBudget()))));
  MachineRates& rates = topology.rates;
  SelectIsa(config.numerics.isa, PrecisionOf(config.numerics));
  rates.matrix_flops = MeasureMatrixFlops(pool, PrecisionOf(config.numerics)) / workers;
  rates.stream_bytes = MeasureStreamBytes(pool) / workers;
  if (config.comm.backend == "mpi") rates.UseSharedMemory();
  rates.memory_bytes = static_cast<double>(ReadMemoryBudget().room) / workers;
  const int64_t row_bytes = (config.model.embedding_dim * 4 + 63) / 64 * 64;
  if (config.device == "cuda")
    rates.gpu_memory_bytes = static_cast<double>(FreeDeviceBytes(workers));
  rates.row_bytes = MeasureRandomRowBytes(pool, row_bytes, int64_t{1} << 29) / workers;
  return topology;
}

// Reads the data's items, as training does.
RankingNeed RankingNeedOf(const TrainConfig& config, const OpenedSplits& splits,
                          Communicator& comm) {
  const ItemRanking ranking = ItemsToRank(config, splits, comm);
  RankingNeed need{.outputs = {}, .bytes = ranking.bytes()};
  for (const ItemRanking::Size& of : ranking.sizes())
    need.outputs.push_back(
        {.name = of.output, .candidates = of.candidates, .width = of.width, .rows = of.rows});
  return need;
}

PlanInput ReadInput(const PlanFlags& flags) {
  PlanInput input;
  TrainConfig& config = input.config;
  ReadConfigFile(flags.config_path, flags.overrides,
                 [&](ConfigFields& fields) { config.Describe(fields); });
  if (!flags.backend.empty()) config.comm.backend = flags.backend;
  if (config.data.train.path.empty()) {
    input.schema = SchemaOf(config);
    input.pooling_factors.assign(input.schema.categorical.size(), 1.0);
  } else {
    const std::unique_ptr<Communicator> comm = MakeLocalCommunicator();
    const OpenedSplits splits = OpenSplits(config.data, config.features, *comm);
    input.schema = splits.train.dataset->schema();
    CheckTasks(config.training.loss, ModelOptionsOf(config, input.schema).outputs, input.schema);
    input.pooling_factors = EstimatePoolingFactors(splits.train);
    input.rows = splits.train.rows.size();
    if (!config.training.ranking.empty()) input.ranking = RankingNeedOf(config, splits, *comm);
  }
  if (!config.optimizer.blocks.empty())
    GroupsOf(*MakeModel(ModelOptionsOf(config, input.schema)), config.optimizer.blocks);
  const int cores = UsableCpus(ReadCpuBudget());
  int workers = flags.workers > 0 ? flags.workers : NumWorkers(config, cores);
  input.threads = flags.threads > 0    ? flags.threads
                  : config.threads > 0 ? config.threads
                                       : std::max(1, cores / workers);
  if (flags.topology_path.empty()) {
    input.topology = MeasuredTopology(workers, input.threads, config);
  } else {
    input.topology = ReadTopology(flags.topology_path);
    input.threads = input.topology.rates.threads;
    if (flags.workers > 0 && flags.workers != input.topology.workers())
      Fail(ErrorCode::kUsage, "--workers is {}, but {} describes {}: leave out --workers",
           flags.workers, flags.topology_path, Counted(input.topology.workers(), "worker"));
  }
  return input;
}

std::string ShardingsText(const PlannedRun& planned) {
  std::map<std::string, int> counts;
  for (size_t t = 0; t < planned.tables.size(); ++t) {
    const Sharding sharding = ShardingOf(planned.plan, t, planned.topology);
    ++counts[sharding == Sharding::kAuto ? "mixed"
                                         : ShardingNames()[static_cast<size_t>(sharding)]];
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The memory that writing a checkpoint takes.
double CheckpointBytes(const WorkerCost& worker) {
  return worker.memory_bytes() - worker.table_bytes - worker.exchange_bytes;
}

void PrintWorkers(const PlannedRun& planned) {
  constexpr size_t kMostRows = 16;
  const bool catches_up = planned.step.catch_up > 0;
  std::vector<Table::Column> columns = {{"worker"},
                                        {"tables GiB", kRight},
                                        {"exchange GiB", kRight},
                                        {"checkpoint GiB", kRight},
                                        {"dense and batches GiB", kRight},
                                        {"memory GiB", kRight},
                                        {"lookup ms", kRight},
                                        {"output_dist ms", kRight},
                                        {"gradients ms", kRight},
                                        {"update ms", kRight}};
  if (catches_up) columns.push_back({"catch up ms", kRight});
  Table table(std::move(columns));
  std::vector<size_t> order(planned.workers.size());
  for (size_t w = 0; w < order.size(); ++w) order[w] = w;
  if (order.size() > kMostRows) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return planned.memory_bytes(a) > planned.memory_bytes(b);
    });
    order.resize(kMostRows);
  }
  const std::vector<WorkerTimes> times =
      TimesOfWorkers(planned.workers, planned.run, planned.topology);
  for (const size_t w : order) {
    const WorkerCost& worker = planned.workers[w];
    std::vector<std::string> cells = {std::to_string(w),
                                      Gib(worker.table_bytes),
                                      Gib(worker.exchange_bytes),
                                      Gib(CheckpointBytes(worker)),
                                      Gib(planned.run.fixed_memory_bytes),
                                      Gib(planned.memory_bytes(w)),
                                      Ms(times[w].lookup),
                                      Ms(times[w].output_dist),
                                      Ms(times[w].gradients),
                                      Ms(times[w].update)};
    if (catches_up) cells.push_back(Ms(times[w].catch_up));
    table.Add(std::move(cells));
  }
  fmt::print("{}", table.Text());
  if (planned.workers.size() > kMostRows)
    fmt::print("({} more workers need no more)\n", planned.workers.size() - kMostRows);
}

void PrintStep(const PlannedRun& planned) {
  Table table({{"phase"}, {"ms", kRight}, {"of step", kRight}});
  for (const NamedPhase& phase : PhasesOf(planned.step))
    table.Add({phase.name, Ms(phase.seconds),
               fmt::format("{:.0f} %", 100 * phase.seconds / planned.step.total())});
  fmt::print("\n{}step {} ms, {:.1f}k samples/s; the bottleneck is {}\n", table.Text(),
             Ms(planned.step.total()),
             static_cast<double>(planned.run.batch) / planned.step.total() / 1e3,
             BottleneckOf(planned.step));
}

void PrintGpu(const PlannedRun& planned) {
  if (!planned.gpu) return;
  const double limit = planned.topology.rates.gpu_memory_bytes;
  const std::string tables = planned.gpu->has_tables()
                                 ? "with the tables"
                                 : fmt::format("the tables stay in the host's memory, because {}",
                                               planned.gpu->why_not_tables);
  const std::string bytes = Gib(static_cast<double>(planned.gpu->bytes));
  if (limit > 0) {
    fmt::print("GPU memory: {} of {} GiB on the worker that needs most ({}): {}\n", bytes,
               Gib(limit), tables, planned.fits_gpu() ? "it fits" : "IT DOES NOT FIT");
  } else {
    fmt::print("GPU memory: {} GiB on the worker that needs most ({})\n", bytes, tables);
  }
}

void PrintRanking(const PlanInput& input) {
  if (input.config.training.ranking.empty()) return;
  if (!input.ranking) {
    fmt::print("ranking: its candidates and their memory are unknown without data.train.path\n");
    return;
  }
  for (const RankingNeed::Output& output : input.ranking->outputs)
    fmt::print("ranking{} at each evaluation: {}, each among {} of width {}: {:.3g} MFLOP a row\n",
               output.name.empty() ? "" : " of " + Escape(output.name), Counted(output.rows, "row"),
               Counted(output.candidates, "candidate"), output.width, output.flops_per_row() / 1e6);
  fmt::print("ranking: {} GiB on each worker, counted in its memory\n",
             Gib(static_cast<double>(input.ranking->bytes)));
}

nlohmann::ordered_json RankingJson(const PlanInput& input) {
  if (!input.ranking) return nullptr;
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const RankingNeed::Output& output : input.ranking->outputs)
    outputs.push_back({{"output", output.name},
                       {"candidates", output.candidates},
                       {"width", output.width},
                       {"rows", output.rows},
                       {"flops_per_row", output.flops_per_row()}});
  return {{"outputs", outputs}, {"memory_bytes", input.ranking->bytes}};
}

// What to know about the run besides its plan.
struct RunNotes {
  DiskUse disk;
  std::vector<std::string> warnings;
};

RunNotes NotesOn(const PlanInput& input) {
  const RunSpec spec = MakeRunSpec(input.config, input.schema, input.pooling_factors);
  if (input.rows == 0) return {.disk = DiskUseOf(spec), .warnings = {}};
  const int64_t steps = NumSteps(input.config, input.rows);
  const int64_t samples = std::min(input.rows, steps * input.config.training.batch_size);
  RunNotes notes{.disk = DiskUseOf(spec, SavedSamples(input.config, samples)),
                 .warnings = {LeftOutAdvice(input.config, input.rows, steps)}};
  if (input.config.training.initialize_from.empty())
    notes.warnings.push_back(UntouchedRowsAdvice(spec, input.schema, samples));
  std::erase(notes.warnings, "");
  return notes;
}

void PrintReport(const PlanInput& input, const PlannedRun& planned) {
  fmt::print("{} on {}, {}: {}\n\n", Counted(planned.topology.workers(), "worker"),
             Counted(std::ssize(planned.topology.hosts), "host"),
             Counted(std::ssize(planned.tables), "table"), ShardingsText(planned));
  PrintWorkers(planned);
  PrintStep(planned);
  fmt::print("model: {:.3g} MFLOP for each sample, forward and backward\n",
             planned.run.flops_per_sample / 1e6);
  PrintRanking(input);
  const double limit = planned.topology.rates.memory_bytes;
  if (limit > 0)
    fmt::print("memory: {} of {} GiB on the worker that needs most: {}\n",
               Gib(planned.most_memory_bytes()), Gib(limit),
               planned.fits() ? "it fits" : "IT DOES NOT FIT");
  PrintGpu(planned);
  const RunNotes notes = NotesOn(input);
  fmt::print("disk: {}\n", Describe(notes.disk));
  for (const std::string& warning : notes.warnings) fmt::print("warning: {}\n", warning);
  const std::vector<Advice> advice = WhatWouldHelp(input, planned);
  if (advice.empty()) return;
  Table table({{planned.fits() ? "faster with" : "less memory with"},
               {"memory GiB", kRight},
               {"step ms", kRight},
               {"fits"}});
  for (const Advice& change : advice)
    table.Add({change.change, Gib(change.most_memory_bytes), Ms(change.step_seconds),
               change.fits ? "yes" : "no"});
  fmt::print("\n{}", table.Text());
}

nlohmann::ordered_json ToJson(const PlanInput& input, const PlannedRun& planned) {
  nlohmann::ordered_json workers = nlohmann::ordered_json::array(),
                         phases = nlohmann::ordered_json::object(),
                         tables = nlohmann::ordered_json::object(),
                         advice = nlohmann::ordered_json::array();
  const std::vector<WorkerTimes> times =
      TimesOfWorkers(planned.workers, planned.run, planned.topology);
  for (size_t w = 0; w < planned.workers.size(); ++w) {
    const WorkerCost& worker = planned.workers[w];
    workers.push_back({{"table_bytes", worker.table_bytes},
                       {"exchange_bytes", worker.exchange_bytes},
                       {"checkpoint_bytes", CheckpointBytes(worker)},
                       {"memory_bytes", planned.memory_bytes(w)},
                       {"lookup_seconds", times[w].lookup},
                       {"output_dist_seconds", times[w].output_dist},
                       {"gradients_seconds", times[w].gradients},
                       {"update_seconds", times[w].update},
                       {"catch_up_seconds", times[w].catch_up}});
  }
  for (const NamedPhase& phase : PhasesOf(planned.step)) phases[phase.name] = phase.seconds;
  for (size_t t = 0; t < planned.tables.size(); ++t) {
    const Sharding sharding = ShardingOf(planned.plan, t, planned.topology);
    tables[planned.tables[t].name] =
        sharding == Sharding::kAuto ? "mixed" : ShardingNames()[static_cast<size_t>(sharding)];
  }
  for (const Advice& change : WhatWouldHelp(input, planned))
    advice.push_back({{"change", change.change},
                      {"step_seconds", change.step_seconds},
                      {"memory_bytes", change.most_memory_bytes},
                      {"fits", change.fits}});
  nlohmann::ordered_json gpu;  // null without one
  if (planned.gpu)
    gpu = {{"memory_bytes", planned.gpu->bytes},
           {"memory_limit_bytes", planned.topology.rates.gpu_memory_bytes},
           {"has_tables", planned.gpu->has_tables()},
           {"why_not_tables", planned.gpu->why_not_tables},
           {"fits", planned.fits_gpu()}};
  const RunNotes notes = NotesOn(input);
  return {{"workers", workers},
          {"phases", phases},
          {"step_seconds", planned.step.total()},
          {"samples_per_second", static_cast<double>(planned.run.batch) / planned.step.total()},
          {"flops_per_sample", planned.run.flops_per_sample},
          {"ranking", RankingJson(input)},
          {"memory_bytes", planned.most_memory_bytes()},
          {"memory_limit_bytes", planned.topology.rates.memory_bytes},
          {"fits", planned.fits()},
          {"gpu", gpu},
          {"full_checkpoint_bytes", notes.disk.checkpoint()},
          {"model_bytes", notes.disk.model()},
          {"warnings", notes.warnings},
          {"sharding", tables},
          {"advice", advice}};
}

struct Sweep {
  int first = 0, last = 0;
};

// "workers=8..1024"
Sweep ParseSweep(std::string_view text) {
  Sweep sweep;
  const char *at = text.data(), *const end = at + text.size();
  const auto skip = [&](std::string_view word) {
    const bool there = std::string_view(at, static_cast<size_t>(end - at)).starts_with(word);
    if (there) at += word.size();
    return there;
  };
  const auto number = [&](int* value) {
    const auto [rest, error] = std::from_chars(at, end, *value);
    at = rest;
    return error == std::errc();
  };
  if (!(skip("workers=") && number(&sweep.first) && skip("..") && number(&sweep.last)) ||
      at != end || sweep.first < 1 || sweep.last < sweep.first || sweep.last > kMostWorkers)
    Fail(ErrorCode::kUsage, "--sweep is '{}': write workers=8..1024, with 1 to {}", text,
         Counted(kMostWorkers, "worker"));
  return sweep;
}

// As many workers as `workers` on hosts like those of `topology`, the last of which may have fewer.
Topology WithWorkers(const Topology& topology, int workers) {
  Topology result{.hosts = {}, .rates = topology.rates};
  const int per_host = topology.hosts[0].size();
  for (int begin = 0; begin < workers; begin += per_host)
    result.hosts.push_back({begin, std::min(begin + per_host, workers)});
  return result;
}

// This machine, whose rates are those of one worker, shared by several.
Topology SharedBy(const Topology& machine, int workers) {
  Topology shared{.hosts = {{0, workers}}, .rates = machine.rates};
  for (double* rate : {&shared.rates.matrix_flops, &shared.rates.stream_bytes,
                       &shared.rates.row_bytes, &shared.rates.memory_bytes})
    *rate /= workers;
  if (machine.rates.gpu_memory_bytes > 0)
    shared.rates.gpu_memory_bytes = static_cast<double>(FreeDeviceBytes(workers));
  return shared;
}

// Returns whether any of them fits.
bool RunSweep(PlanFlags flags) {
  const Sweep sweep = ParseSweep(flags.sweep);
  if (!flags.output.empty()) Fail(ErrorCode::kUsage, "--output writes one plan: leave out --sweep");
  if (flags.workers > 0 || flags.threads > 0)
    Fail(ErrorCode::kUsage, "--sweep chooses the workers: leave out --workers and --threads");
  if (!flags.svg.empty()) CheckOutputFile(flags.svg);
  flags.workers = flags.topology_path.empty() ? 1 : 0;
  const PlanInput input = ReadInput(flags);
  const std::vector<SweepPoint> points =
      SweepWorkers(input, sweep.first, sweep.last, [&](int workers) {
        return flags.topology_path.empty() ? SharedBy(input.topology, workers)
                                           : WithWorkers(input.topology, workers);
      });
  if (!flags.svg.empty()) WriteOutputFile(flags.svg, DrawSweep(points, flags.config_path));
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  Table table({{"workers", kRight},
               {"hosts", kRight},
               {"samples/s", kRight},
               {"efficiency", kRight},
               {"step ms", kRight},
               {"memory GiB", kRight},
               {"fits"},
               {"bottleneck"}});
  for (const SweepPoint& point : points) {
    table.Add({std::to_string(point.workers), std::to_string(point.hosts),
               fmt::format("{:.1f}k", point.samples_per_second / 1e3),
               fmt::format("{:.0f} %", 100 * point.efficiency), Ms(point.step_seconds),
               Gib(point.memory_bytes), point.fits ? "yes" : "no", point.bottleneck});
    json.push_back({{"workers", point.workers},
                    {"hosts", point.hosts},
                    {"samples_per_second", point.samples_per_second},
                    {"efficiency", point.efficiency},
                    {"step_seconds", point.step_seconds},
                    {"memory_bytes", point.memory_bytes},
                    {"fits", point.fits},
                    {"bottleneck", point.bottleneck}});
  }
  fmt::print("{}", flags.json ? json.dump(2) + "\n" : table.Text());
  return std::any_of(points.begin(), points.end(), [](const SweepPoint& p) { return p.fits; });
}

// Returns whether it fits.
bool RunPlan(const PlanFlags& flags) {
  if (!flags.sweep.empty()) return RunSweep(flags);
  if (!flags.output.empty()) CheckOutputFile(flags.output);
  if (!flags.svg.empty()) Fail(ErrorCode::kUsage, "--svg draws a sweep: add --sweep");
  const PlanInput input = ReadInput(flags);
  const PlannedRun planned = PlanRun(input);
  if (!flags.output.empty()) {
    WriteOutputFile(flags.output,
                    PrintPlan(planned.plan, planned.tables, planned.topology.workers()));
    LogInfo("wrote the plan to {}", flags.output);
  }
  if (flags.json) {
    fmt::print("{}\n", ToJson(input, planned).dump(2));
  } else {
    PrintReport(input, planned);
  }
  return planned.fits();
}

}  // namespace

void AddPlanVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand(
      "plan", "Plan which worker holds which part of which table, and say what it costs");
  const auto flags = std::make_shared<PlanFlags>();
  verb->add_option("config", flags->config_path, "YAML configuration")->required();
  verb->add_option("--set", flags->overrides, "Override one key: --set training.batch_size=4096")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_option("--workers", flags->workers,
                   "Plan for this many workers of this machine, whose rates are measured")
      ->check(AtLeast(1));
  verb->add_option("--backend", flags->backend, "How workers exchange: gloo by default")
      ->check(OneOf({"gloo", "mpi"}));
  verb->add_option("--threads", flags->threads, "Threads per worker")->check(AtLeast(1));
  verb->add_option("--topology", flags->topology_path,
                   "Plan for the machines that this file describes (docs/sharding.md)");
  verb->add_option("--sweep", flags->sweep,
                   "workers=8..1024: predict how the same batch scales, doubling the workers");
  verb->add_option("--svg", flags->svg, "Draw the sweep into this file");
  verb->add_option("-o,--output", flags->output, "Write the plan to this file");
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(
      "Without data.train.path, tables are those of `features`, with the pooling factors of\n"
      "model.tables. Exit code 71: it does not fit into the workers' memory.\n"
      "Examples:\n"
      "  renzan plan examples/quickstart.yaml --workers 2 --output plan.yaml\n"
      "  renzan train examples/quickstart.yaml --workers 2 --plan plan.yaml\n"
      "  renzan plan examples/plans/mlperf_dcnv2.yaml --topology examples/plans/8_workers.yaml\n"
      "  renzan plan examples/plans/mlperf_dcnv2.yaml --topology examples/plans/8_workers.yaml \\\n"
      "    --sweep workers=8..64 --svg scaling.svg");
  verb->callback([flags, &exit_status] {
    exit_status = RunPlan(*flags) ? 0 : static_cast<int>(ErrorCode::kOsError);
  });
}

}  // namespace renzan
