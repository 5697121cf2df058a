#include "renzan/cli/train/saved_model.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "renzan/base/build_id.h"
#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/train/model_data.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/config/config_difference.h"
#include "renzan/data/known_ids.h"
#include "renzan/planning/device_options.h"
#include "renzan/planning/make_plan.h"
#include "renzan/run/agreement.h"
#include "renzan/run/open_model.h"
#include "renzan/run/splits.h"
#include "renzan/saving/model_directory.h"
#include "renzan/saving/resume.h"
#include "renzan/step/make_step.h"

namespace renzan {
namespace {

// The configuration of a saved model, with --set applied. Only keys that decide how predictions are
// computed may be overridden, not those of the model itself.
TrainConfig ReadConfig(const CheckpointReader& reader, const std::vector<std::string>& overrides) {
  const auto read = [&](std::span<const std::string> given) {
    TrainConfig config;
    ReadConfigText(reader.config(), reader.dir() + "/manifest.json", given,
                   [&](ConfigFields& fields) { config.Describe(fields); });
    return config;
  };
  TrainConfig config = read(overrides);
  const auto is_fixed = [](Decides decides) { return !MayChangeAfterTraining(decides); };
  if (const auto difference = FirstDifference(read({}), config, is_fixed))
    Fail(ErrorCode::kUsage,
         "--set {}: it is {} in {} and cannot be changed after training; other keys of numerics, "
         "device, comm.forward and training.batch_size can",
         difference->key, difference->there, reader.dir());
  // Earlier versions saved tables of any size whole.
  const std::vector<std::string> keys = reader.keys();
  if (std::none_of(keys.begin(), keys.end(), [](const std::string& key) {
        return key.find(".row_block_") != std::string::npos;
      })) {
    config.numerics.row_blocks = 1;
    for (auto& [name, table] : config.model.tables) table.row_blocks = 0;
  }
  return config;
}

// The data that the flags name, or those that the model's configuration evaluates on.
SplitConfig DataOf(const SavedModelFlags& flags, const TrainConfig& config) {
  if (!flags.data.empty()) return {.path = flags.data, .rows = flags.rows};
  SplitConfig data = config.data.eval;
  if (data.path.empty())
    Fail(ErrorCode::kUsage,
         "{}: its configuration has no data.eval: name a dataset with --data DIR", flags.model);
  if (!flags.rows.empty()) data.rows = flags.rows;
  return data;
}

// Every rank calls it, after the predictions.
void Report(const KnownIds* known, Communicator& comm) {
  if (known == nullptr) return;
  const auto sum = [&](int64_t mine) {
    const std::vector<int64_t> all = AllGatherValues(comm, mine);
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  };
  const int64_t unseen = sum(known->unseen()), lookups = sum(known->lookups());
  if (comm.rank() == 0)
    LogInfo(
        "the vocabularies of the data continue the model's: {} of values that the model "
        "does not know ({:.1f} % of all) read its rows for unseen values",
        Counted(unseen, "lookup"),
        100.0 * static_cast<double>(unseen) / static_cast<double>(std::max<int64_t>(1, lookups)));
}

}  // namespace

void AddSavedModelFlags(CLI::App& verb, SavedModelFlags& flags, bool needs_data) {
  verb.add_option("model", flags.model, "A run, a model or a checkpoint")->required();
  verb.add_option("--data", flags.data,
                  needs_data
                      ? "Dataset directory"
                      : "Dataset directory (default: data.eval of the model's configuration)")
      ->required(needs_data);
  verb.add_option("--rows", flags.rows, "Only rows BEGIN END of it")->expected(2);
  verb.add_option("--set", flags.overrides,
                  "Override one key of numerics (other than embedding_precision and blocks), "
                  "device, comm.forward or "
                  "training.batch_size: --set numerics.isa=auto")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_option("--workers", flags.workers, "Start this many workers on this machine")
      ->check(AtLeast(1));
  verb.add_option("--threads", flags.threads, "Threads per worker")->check(AtLeast(1));
  verb.add_option("--backend", flags.backend, "How workers exchange")
      ->check(OneOf({"auto", "local", "gloo", "mpi"}));
}

int WithSavedModel(const SavedModelFlags& flags,
                   const std::function<void(Predictor&, const TrainConfig&, Communicator&,
                                            const Dataset&, RowRange)>& body) {
  const auto run = [&](Communicator& comm, int threads) {
    CheckpointReader reader = OpenSameModel(flags.model, comm);
    TrainConfig config = ReadConfig(reader, flags.overrides);
    CheckSameRun(comm, config, FactsOfWorker(BuildId(), config, comm));
    const SplitConfig data = DataOf(flags, config);
    if (flags.data.empty() && comm.rank() == 0)
      LogInfo("on the data.eval of its configuration: {}", Describe(data));
    std::optional<DataOfRun> of_run;
    if (flags.data.empty()) of_run = DataOfRun{flags.model, "--data"};
    const ModelData opened = OpenModelData(data.path, config, of_run, comm);
    const Dataset& dataset = *opened.dataset;
    const RowRange rows = flags.rows.empty()
                              ? ResolveRows(data.rows, dataset, "data.eval.rows")
                              : ResolveRows(data.rows, dataset, "--rows", ErrorCode::kUsage);
    // Nothing is trained: no memory for optimizer states or residuals.
    config.comm.error_feedback_rows = 0;
    config.optimizer.dense.type = config.optimizer.sparse.type = "sgd";
    config.sharding = {};
    std::vector<double> pooling_factors;
    RunWithHeartbeats(comm, [&] { pooling_factors = EstimatePoolingFactors({&dataset, rows}); });
    RunSpec spec = MakeRunSpec(config, opened.schema, pooling_factors);
    // Nor is there a loss, which a GPU might not compute.
    spec.loss = {.tasks = std::move(spec.loss.tasks)};
    for (Task& task : spec.loss.tasks) {
      task.weight = 1;
      task.loss = Loss::kBinaryCrossEntropy;
    }
    ThreadPool pool(PoolThreads(spec, comm.world_size(), threads));
    if (comm.world_size() == 1 && !spec.numerics.on_gpu && WholeTables::CanHold(spec.tables)) {
      InferenceModel model(InferenceOptionsOf(spec), pool);
      model.Load(reader);
      WholePredictor predictor(model, opened.known_ids.get());
      body(predictor, config, comm, dataset, rows);
      return Report(opened.known_ids.get(), comm);
    }
    // The tables may be larger than one worker's memory, so that a step's exchanges are needed.
    const ShardingPlan plan = AgreeOnPlan(spec, comm, threads);
    std::optional<ModelState> state;
    std::unique_ptr<Step> step;
    RunWithHeartbeats(comm, [&] {
      state.emplace(spec, plan, comm, pool, InitialValues::kZero);
      LoadModel(reader, &*state);
      step = MakeStep(*state, comm);
    });
    StepPredictor predictor(*step, opened.known_ids.get());
    body(predictor, config, comm, dataset, rows);
    Report(opened.known_ids.get(), comm);
  };
  // Before any worker is started.
  const auto check_workers = [&] {
    const CheckpointReader reader(FindModel(flags.model).dir);
    const TrainConfig config = ReadConfig(reader, flags.overrides);
    DataOf(flags, config);
    const int most = config.numerics.virtual_workers;
    if (flags.workers > most)
      Fail(ErrorCode::kUsage, "--workers {}: the model has {}: use at most {}", flags.workers,
           Counted(most, "virtual worker"), most);
  };
  return RunWorkers({.workers = flags.workers,
                     .threads = flags.threads,
                     .backend = flags.backend,
                     .on_launcher = check_workers},
                    run);
}

}  // namespace renzan
