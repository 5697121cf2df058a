// renzan train CONFIG.yaml | --rerun DIR | --resume --run-dir DIR

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <sstream>

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/shorthand.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/train/rerun.h"
#include "renzan/cli/train/train_signals.h"
#include "renzan/cli/train/workers.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/rendezvous.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/planning/make_plan.h"
#include "renzan/planning/memory_check.h"
#include "renzan/run/run.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

struct TrainFlags {
  std::string config_path, rerun;
  std::vector<std::string> overrides;
  bool print_config = false, resume = false, initialize_partly = false;
  int workers = 0, threads = 0;
  int64_t profile_steps = 0;
  std::string backend, run_dir, plan, initialize_from;
};

const char* Environment(const char* name) { return std::getenv(name); }

std::vector<Shorthand> ShorthandsIn(const TrainFlags& flags) {
  std::vector<Shorthand> all;
  const auto add = [&](const char* flag, const char* key, const std::string& value) {
    all.push_back({fmt::format("{} {}", flag, value), fmt::format("{}={}", key, value)});
  };
  if (flags.workers != 0) add("--workers", "workers", std::to_string(flags.workers));
  if (flags.threads != 0) add("--threads", "threads", std::to_string(flags.threads));
  if (!flags.backend.empty()) add("--backend", "comm.backend", flags.backend);
  return all;
}

std::vector<std::string> AllOverrides(const TrainFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  for (const Shorthand& flag : ShorthandsIn(flags)) overrides.push_back(flag.override_text);
  return overrides;
}

// Reads the configuration that the flags select. Returns the name for a new run.
std::string ReadConfig(const TrainFlags& flags, TrainConfig& config) {
  const auto describe = [&](ConfigFields& fields) { config.Describe(fields); };
  if (!flags.config_path.empty()) {
    ReadConfigFile(flags.config_path, AllOverrides(flags), describe);
    return std::filesystem::path(flags.config_path).stem().string();
  }
  if (!flags.rerun.empty()) {
    // The rerun must not write into the directories of the original run.
    std::vector<std::string> overrides = {"run_dir=''", "checkpoint.dir=''"};
    for (const std::string& o : AllOverrides(flags)) overrides.push_back(o);
    ReadRecordedConfig(flags.rerun, overrides, describe);
    return "rerun";
  }
  if (flags.resume) {
    CheckIsRun(flags.run_dir);
    const std::string path = flags.run_dir + "/manifest.json";
    ReadConfigText(ReadRunManifest(path).config, path, AllOverrides(flags), describe);
    return "";
  }
  ReadConfigText("", "defaults", AllOverrides(flags), describe);
  return "";
}

// Other verbs, and --rerun, name a run where a configuration file goes here.
void CheckIsNoRun(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return;
  const std::string run = FindRun(path);
  if (run.empty()) Fail(ErrorCode::kNoInput, "{} is a directory: name a configuration file", path);
  if (std::filesystem::equivalent(run, path, ignored))
    Fail(
        ErrorCode::kNoInput,
        "{} is a run: resume it with `renzan train --resume --run-dir {}`, or name a configuration "
        "file",
        path, path);
  Fail(ErrorCode::kNoInput,
       "{} is of the run {}: resume that with `renzan train --resume --run-dir {}`, or name a "
       "configuration file",
       path, run, run);
}

void CheckFlags(const TrainFlags& flags) {
  const bool config = !flags.config_path.empty(), rerun = !flags.rerun.empty();
  if (config && rerun) Fail(ErrorCode::kUsage, "name a configuration file or --rerun, not both");
  if (rerun && flags.resume)
    Fail(ErrorCode::kUsage, "--rerun repeats a run, --resume continues one: choose one of them");
  if (rerun && (!flags.initialize_from.empty() || flags.initialize_partly))
    Fail(ErrorCode::kUsage, "--rerun repeats a run from the model that it started from, if any");
  if (config) CheckIsNoRun(flags.config_path);
  if (config || rerun || flags.print_config) return;
  if (!flags.resume)
    Fail(ErrorCode::kUsage,
         "name a configuration file, --rerun DIR, or --resume --run-dir DIR (see renzan train "
         "--help)");
  if (flags.run_dir.empty())
    Fail(ErrorCode::kUsage, "--resume without a configuration file needs --run-dir DIR");
}

// Whether the run is to be elsewhere than where the launch contract puts it.
bool HasOwnRunDirectory(const TrainConfig& config) {
  const char* dir = Environment("RENZAN_RUN_DIR");
  return !config.run_dir.empty() && dir != nullptr && config.run_dir != dir;
}

// Whether the job system has put `checkpoints` beside the attempts of the job, rather than where
// its user wants them. They would be lost with the job: a run that is elsewhere keeps its own.
bool IsInJobDirectory(const std::filesystem::path& checkpoints) {
  const char* attempt = Environment("RENZAN_ATTEMPT_DIR");
  return attempt != nullptr &&
         checkpoints.parent_path() == std::filesystem::path(attempt).parent_path();
}

// Sets directories from the launch contract's environment variables unless a flag or the
// configuration does, and names the directory of a new run. `children` passes it to workers that
// this process starts.
void ResolveDirectories(const TrainFlags& flags, const std::string& name, TrainConfig& config,
                        std::vector<std::string>& children) {
  // A rerun starts from scratch, so it must not find the checkpoints of the original run.
  const char* checkpoints = flags.rerun.empty() ? Environment("RENZAN_CHECKPOINT_DIR") : nullptr;
  if (checkpoints != nullptr && config.checkpoint.dir.empty() &&
      !(HasOwnRunDirectory(config) && IsInJobDirectory(checkpoints)))
    config.checkpoint.dir = checkpoints;
  if (!config.run_dir.empty()) return;
  if (const char* dir = Environment("RENZAN_RUN_DIR"); dir && *dir != 0) {
    config.run_dir = dir;
  } else if (!RendezvousFromEnvironment(Environment)) {
    // A new directory holds nothing to resume from.
    if (flags.resume && config.checkpoint.dir.empty())
      Fail(ErrorCode::kUsage, "--resume: name the run to resume with --run-dir DIR");
    config.run_dir = NewRunDirectory(name, SystemClock());
    children.push_back("RENZAN_RUN_DIR=" + config.run_dir);
  }
}

double GraceSeconds() {
  const char* text = Environment("RENZAN_GRACE_SECONDS");
  if (text == nullptr || *text == 0) return 0;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != 0 || !(seconds >= 0) || !std::isfinite(seconds))
    Fail(ErrorCode::kUsage, "RENZAN_GRACE_SECONDS is '{}': it must be a number of seconds", text);
  return seconds;
}

// Where a job system says how much time a stop really leaves (stop_deadline.h).
std::string StopNoticePath() {
  const char* dir = Environment("RENZAN_RUN_DIR");
  return dir == nullptr || *dir == 0 ? "" : fmt::format("{}/stop.json", dir);
}

// Where a job system looks for the progress of a run, whose directory may be another.
std::string StatusPath() {
  const char* dir = Environment("RENZAN_RUN_DIR");
  return dir == nullptr || *dir == 0 ? "" : fmt::format("{}/status.json", dir);
}

// Whether this run has been tried before, by the launcher or by a job system; both count from 0.
bool IsRestarted() {
  const char* restart = Environment("RENZAN_RESTART");
  return (restart != nullptr && std::atoi(restart) > 0) ||
         JobAttempt::FromEnvironment().attempt > 0;
}

// Why so many workers on this machine do not fit into memory. Empty if they do, and if unknown;
// workers report other errors themselves.
std::string WhyTheyDoNotFit(const TrainConfig& config, int workers) {
  if (!config.check_memory) return "";
  const int cores = UsableCpus(ReadCpuBudget());
  const int threads = config.threads > 0 ? config.threads : std::max(1, cores / workers);
  try {
    const std::unique_ptr<Communicator> comm = MakeLocalCommunicator();
    const Dataset dataset(config.data.train.path,
                          {.warn = false, .cache = config.data.cache.options()});
    const DatasetSchema& schema = dataset.schema();
    const std::vector<double> pooling_factors = EstimatePoolingFactors(
        {&dataset, ResolveRows(config.data.train.rows, dataset, "data.train.rows")});
    Topology topology = Topology::OneHost(workers);
    std::vector<SharedMemory> memory = MemoryOfWorkers(*comm);
    for (SharedMemory& shared : memory) {
      shared.ranks.resize(static_cast<size_t>(workers));
      std::iota(shared.ranks.begin(), shared.ranks.end(), 0);
      const double share = static_cast<double>(shared.bytes) / workers;
      double& least = topology.rates.memory_bytes;
      least = least == 0 ? share : std::min(least, share);
    }
    const RunSpec spec = MakeRunSpec(config, schema, pooling_factors);
    const ShardingPlan plan = PlanOf(spec, topology, threads);
    return WhyItDoesNotFit(EstimateMemoryOfWorkers(spec, plan, workers, threads), memory);
  } catch (const Error&) {
    return "";
  }
}

// Whether a restart may have so many workers. A plan file is for another number.
bool FewerFit(TrainConfig config, int workers) {
  config.sharding.plan.clear();
  return WhyTheyDoNotFit(config, workers).empty();
}

// A restart would not help workers that do not fit into memory, so none is started.
void CheckMemoryOfWorkers(const TrainConfig& config, int workers) {
  const std::string why = WhyTheyDoNotFit(config, workers);
  if (!why.empty()) Fail(ErrorCode::kOsError, "{}", why);
}

// What a model of the catalogue consists of, as a comment after its configuration. It depends on
// the features of the dataset; "" without one.
std::string ModelAsBlocks(const TrainConfig& config) {
  ModelConfig model = config.model;
  if (model.type == kBlocksType || config.data.train.path.empty()) return "";
  try {
    const DatasetSchema schema = ReadManifest(config.data.train.path).schema();
    const Graph graph = GraphOf(ModelOptionsOf(config, schema));
    model.blocks = BlocksOf(graph);
    FillOutputs(schema.label_names(), schema.number_labels(), &model);
    for (const ModelOutput& output : OutputsOf(model))
      if (!output.name.empty())
        model.outputs[output.name].block = output.block.empty() ? graph.back().name : output.block;
  } catch (const Error&) {
    return "";
  }
  model.embedding_dim = RowColumns(config.model.type, model.embedding_dim);
  for (auto& [name, table] : model.tables)
    if (table.embedding_dim > 0)
      table.embedding_dim = RowColumns(config.model.type, table.embedding_dim);
  model.type = kBlocksType;
  const std::string section =
      PrintConfig([&](ConfigFields& fields) { fields.Section("model", &model); });
  std::string text = fmt::format(
      "\n# model.type: {} on this data is this graph of blocks. To change it, begin with this "
      "section:\n#\n",
      config.model.type);
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  return text;
}

int RunTrain(const TrainFlags& flags) {
  RunRequests& requests = BlockTrainSignals();
  CheckFlags(flags);
  TrainConfig config;
  std::string name;
  try {
    name = ReadConfig(flags, config);
  } catch (const Error& error) {
    RethrowAsTyped(error, ShorthandsIn(flags));
  }
  if (!flags.run_dir.empty()) config.run_dir = flags.run_dir;
  if (!flags.plan.empty()) config.sharding.plan = flags.plan;
  if (!flags.initialize_from.empty()) config.training.initialize_from = flags.initialize_from;
  if (flags.initialize_partly) config.training.initialize_partly = true;
  if (flags.print_config) {
    const auto describe = [&](ConfigFields& fields) { config.Describe(fields); };
    std::fputs(PrintConfig(describe, true).c_str(), stdout);
    std::fputs(ModelAsBlocks(config).c_str(), stdout);
    return 0;
  }
  if (config.data.train.path.empty())
    Fail(ErrorCode::kConfig, "{}: data.train.path is missing: name a dataset directory",
         flags.config_path);
  const int asked = NumWorkers(config, UsableCpus(ReadCpuBudget()));
  WorkerOptions workers{
      .workers = asked,
      .threads = config.threads,
      .backend = config.comm.backend,
      .timeout_seconds = config.comm.timeout_seconds,
      .elastic = ElasticOptions{.min_workers = config.elastic.min,
                                .max_restarts = config.elastic.max_restarts,
                                .backoff_seconds = config.elastic.backoff_seconds,
                                .grow_after_seconds = config.elastic.grow_after_seconds(),
                                .fits = [&](int fewer) { return FewerFit(config, fewer); }},
      .environment = {},
      .on_launcher = [&] { CheckMemoryOfWorkers(config, asked); },
      .on_worker = StartServingTrainSignals};
  const bool names_run_directory = !config.run_dir.empty();
  ResolveDirectories(flags, name, config, workers.environment);
  RunOptions options{.name = name,
                     .build_id = BuildId(),
                     .terminal = ::isatty(STDERR_FILENO) != 0,
                     .names_run_directory = names_run_directory,
                     .status_copy = HasOwnRunDirectory(config) ? StatusPath() : "",
                     .must_resume = flags.resume,
                     .restarted = IsRestarted(),
                     .attempt = JobAttempt::FromEnvironment(),
                     .profile_steps = flags.profile_steps,
                     .stop_notice_path = StopNoticePath(),
                     .grace_seconds = GraceSeconds(),
                     .requests = &requests,
                     .clock = &SystemClock()};

  int status = 0;
  const int launched = RunWorkers(workers, [&](Communicator& comm, int threads) {
    options.threads = threads;
    if (!flags.rerun.empty()) CheckSameData(flags.rerun, config);
    const RunResult result = RunTraining(config, options, comm);
    if (result.end == RunResult::End::kStopped) {
      status = static_cast<int>(ErrorCode::kTempFail);
    } else if (!flags.rerun.empty()) {
      if (result.end == RunResult::End::kWasTrained)
        Fail(ErrorCode::kCantCreate, "{} already holds a finished run: choose another --run-dir",
             result.run_dir);
      if (comm.rank() == 0) status = CompareWithRecorded(flags.rerun, result);
    }
  });
  return launched != 0 ? launched : status;
}

}  // namespace

void AddTrainVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("train", "Train a model");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("config", flags->config_path, "YAML configuration");
  verb->add_option("--set", flags->overrides, "Override one key: --set training.batch_size=4096")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--print-config", flags->print_config,
                 "Print the resolved configuration with every default, and exit");
  verb->add_option("--rerun", flags->rerun,
                   "Repeat the run in this run directory and report whether the model is identical "
                   "(exit 1 if not)");
  verb->add_flag(
      "--resume", flags->resume,
      "Resume from the newest checkpoint, which must exist; without a configuration file, use "
      "the one recorded in the manifest of --run-dir DIR");
  verb->add_option("--workers", flags->workers, "Start this many workers on this machine")
      ->check(AtLeast(1));
  verb->add_option("--threads", flags->threads, "Threads per worker")->check(AtLeast(1));
  verb->add_option("--backend", flags->backend, "How workers exchange")
      ->check(OneOf({"auto", "local", "gloo", "mpi"}));
  verb->add_option("--plan", flags->plan, "A sharding plan made by `renzan plan --output`");
  verb->add_option("--initialize-from", flags->initialize_from,
                   "Start from the model of a run (else its newest checkpoint), a model or a "
                   "checkpoint; rows follow their values to this run's data")
      ->type_name("SOURCE");
  verb->add_flag("--initialize-partly", flags->initialize_partly,
                 "With --initialize-from: the model may be another; what both have is taken, by "
                 "name and shape, and the rest begins as initialised");
  verb->add_option("--run-dir", flags->run_dir, "Directory for logs and the model");
  verb->add_option("--profile", flags->profile_steps,
                   "Trace this many steps, after the first few, into RUN/profile.json (open it "
                   "with https://ui.perfetto.dev)")
      ->check(AtLeast(1));
  verb->footer(
      "If the run directory holds checkpoints of the same run, training resumes from the newest.\n"
      "Ctrl-C and SIGTERM write a last checkpoint and exit with 75; the last message names the\n"
      "command that resumes. A second Ctrl-C ends the run at once. SIGUSR1 writes a checkpoint,\n"
      "and training continues.\n"
      "Examples:\n"
      "  renzan train examples/quickstart.yaml --workers 2\n"
      "  renzan train --resume --run-dir runs/dlrm-2026-01-31T12:00:00Z --workers 3\n"
      "  mpirun -n 4 renzan train examples/quickstart.yaml\n"
      "  renzan train tuesday.yaml --initialize-from runs/monday --run-dir runs/tuesday\n"
      "  renzan train --rerun runs/dlrm-2026-01-31T12:00:00Z");
  verb->callback([flags, &exit_status] { exit_status = RunTrain(*flags); });
}

}  // namespace renzan
