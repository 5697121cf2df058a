#include "renzan/run/initialize.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/same_path.h"
#include "renzan/base/log.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/row_origins.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/run/compare_models.h"
#include "renzan/run/open_model.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/saving/initialize.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

// In the manifests of the run's checkpoints.
constexpr const char* kInitializedFromKey = "initialized_from";
constexpr const char* kEarlierStepsKey = "dense_optimizer_earlier_steps";
constexpr const char* kEarlierSparseStepsKey = "sparse_optimizer_earlier_steps";

TrainConfig ConfigOf(const CheckpointReader& reader) {
  TrainConfig config;
  ReadConfigText(reader.config(), reader.dir() + "/manifest.json", {},
                 [&](ConfigFields& fields) { config.Describe(fields); });
  return config;
}

// What is taken of a model that was trained with the configuration `there`.
InitialModel WhatIsTaken(const TrainConfig& there, const TrainConfig& here, const RunSpec& spec,
                         const Dataset& dataset, const PartMatch& parts) {
  const DatasetSchema& schema = dataset.schema();
  std::map<std::string, size_t> places;  // of features there
  for (size_t f = 0; f < there.features.categorical.size(); ++f)
    places.emplace(there.features.categorical[f], f);
  InitialModel initial{.tables = {}, .other_parameters = parts.other_parameters};
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    if (!parts.tables.contains(spec.tables[t].name)) {
      initial.tables.push_back({.rows = spec.tables[t].num_embeddings});
      continue;
    }
    const int64_t feature = FirstCommonFeature(there.features, spec, t, schema);
    const std::string& name = schema.categorical[static_cast<size_t>(feature)].name;
    const size_t f = places.at(name);
    initial.tables.push_back(OriginsOfRows(dataset.directory(), dataset.manifest(), name,
                                           {.vocabulary = there.features.vocabularies[f],
                                            .num_embeddings = there.features.num_embeddings[f],
                                            .dataset = there.data.train.path}));
  }
  initial.dense_states = there.optimizer.dense.type == here.optimizer.dense.type;
  initial.row_states = there.optimizer.sparse.type == here.optimizer.sparse.type;
  return initial;
}

// FTRL computes weights from its states and options alone: under others, each row that is looked up
// would change at once, whatever it was.
void CheckRowsSurvive(const CheckpointReader& reader, const TrainConfig& there,
                      const TrainConfig& here) {
  const SparseOptimizerConfig &of_there = there.optimizer.sparse, &of_here = here.optimizer.sparse;
  if (of_here.type != "ftrl") return;
  const auto options = [](const SparseOptimizerConfig& of, const TrainConfig& config) {
    std::map<std::string, double> factors;
    for (const auto& [name, table] : config.model.tables)
      if (table.learning_rate_factor != 1) factors[name] = table.learning_rate_factor;
    return std::tuple(of.type, of.learning_rate, of.beta, of.l1, of.l2, factors);
  };
  if (options(of_there, there) != options(of_here, here))
    Fail(ErrorCode::kConfig,
         "optimizer.sparse.type: ftrl computes rows from its states alone, so those of {} would be "
         "lost: it must have been trained by ftrl with the same learning_rate, beta, l1, l2 and "
         "learning_rate_factor; or take another optimizer here",
         reader.dir());
}

void CheckModel(const CheckpointReader& reader, const TrainConfig& config, const Dataset& dataset,
                Communicator& comm) {
  const TrainConfig there = ConfigOf(reader);
  if (there.features.empty())
    Fail(ErrorCode::kConfig,
         "{} does not record the columns of its data: only models of `renzan train` do",
         reader.dir());
  const DatasetSchema& schema = dataset.schema();
  const bool partly = config.training.initialize_partly;
  CheckFeatures({.features = there.features,
                 .recorded_by = reader.dir(),
                 .ids = ExpectedIds::kAny,
                 .only_common = partly || !HaveSameFeatures(there.features, schema)},
                dataset, comm);
  if (there.features.vocabularies.empty() && !there.features.categorical.empty())
    Fail(ErrorCode::kConfig,
         "{} does not record its vocabularies, by which rows follow values: an earlier version "
         "trained it; train it again with this one",
         reader.dir());
  const RunSpec spec =
      MakeRunSpec(config, schema, std::vector<double>(schema.categorical.size(), 1.0));
  const ModelComparison comparison = CompareModels(reader, there, spec, schema);
  CheckDifferences(comparison, there.model.type, config.model.type, partly);
  CheckRowsSurvive(reader, there, config);
  CheckInitialShapes(reader, spec.tables,
                     WhatIsTaken(there, config, spec, dataset, comparison.parts));
}

// An attempt at a run that has not written a checkpoint yet starts as the one before did.
void CheckSameModelAsBefore(const std::string& run_dir, const std::string& source,
                            const std::string& identity) {
  const std::string path = run_dir + "/manifest.json";
  if (!FileExists(path)) return;
  const RunManifest manifest = ReadRunManifest(path);
  const std::string& before = manifest.initialized_from;
  if (before.empty() || before == identity) return;
  TrainConfig config;
  ReadConfigText(manifest.config, path, {}, [&](ConfigFields& fields) { config.Describe(fields); });
  // Otherwise FindPastRun says what differs.
  if (!IsSamePath(config.training.initialize_from, source)) return;
  Fail(ErrorCode::kConfig,
       "{} has changed since {} started from it (sha256 {} then, {} now): restore it, or choose "
       "another --run-dir to start a new run",
       source, run_dir, before.substr(0, 12), identity.substr(0, 12));
}

// "12 new (C1 10, C3 2)", of what `count` counts in each table.
std::string CountText(const std::vector<TableSpec>& tables, const InitialModel& initial,
                      int64_t (RowOrigins::*count)() const, const char* what) {
  constexpr size_t kMostNamed = 8;
  int64_t all = 0;
  std::vector<std::string> parts;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (initial.tables[t].begins_anew()) continue;
    const int64_t rows = (initial.tables[t].*count)();
    all += rows;
    if (rows > 0) parts.push_back(fmt::format("{} {}", Escape(tables[t].name), rows));
  }
  if (all == 0) return fmt::format("none {}", what);
  if (parts.size() > kMostNamed) {
    parts.resize(kMostNamed);
    parts.emplace_back("...");
  }
  return fmt::format("{} {} ({})", all, what, fmt::join(parts, ", "));
}

std::string StatesText(const char* of, bool taken, bool has_states, const std::string& there,
                       const std::string& here) {
  if (taken && !has_states) return fmt::format("{} {} has none", of, here);
  if (taken) return fmt::format("{} {} taken", of, here);
  return fmt::format("{} {} starts anew (the model had {})", of, here, there);
}

// The labels of a model's outputs, by their names. `first_label`: of its training data.
std::map<std::string, std::string> LabelsOfOutputs(const ModelConfig& model,
                                                   const std::string& first_label) {
  const std::vector<ModelOutput> outputs = OutputsOf(model);
  std::map<std::string, std::string> labels;
  for (const ModelOutput& output : outputs)
    labels[outputs.size() == 1 ? "" : output.name] =
        outputs.size() == 1 && output.label.empty() ? first_label : output.label;
  return labels;
}

// Outputs may well go on with another label, but nobody should do so unawares.
void WarnOfOtherLabels(const TrainConfig& there, const TrainConfig& here,
                       const DatasetSchema& schema) {
  const auto now = LabelsOfOutputs(here.model, schema.label);
  for (const auto& [name, label] : LabelsOfOutputs(there.model, there.features.label)) {
    const auto found = now.find(name);
    if (found == now.end() || label.empty() || found->second.empty() || found->second == label)
      continue;
    LogWarning(
        "{}learned from the label '{}', and now learns from '{}': if that is not meant, "
        "choose the label with model.outputs, or import the data with that label first",
        name.empty() ? "the model " : fmt::format("the output {} ", Escape(name)), Escape(label),
        Escape(found->second));
  }
}

// "tables 'user', 'item'"; "" of none.
std::string Quoted(const char* what, const std::set<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(fmt::format("'{}'", Escape(name)));
  return names.empty() ? "" : fmt::format("{} {}", what, fmt::join(quoted, ", "));
}

// What the two models have in common, where that is not all.
void ReportParts(const ModelComparison& comparison, const InitialModel& initial,
                 const RunSpec& spec) {
  const PartMatch& parts = comparison.parts;
  if (comparison.same()) return;
  const auto list = [](const char* what, const std::vector<std::string>& all) {
    LogInfo("{}: {}", what, all.empty() ? "nothing" : fmt::format("{}", fmt::join(all, ", ")));
  };
  if (!comparison.features.empty()) list("other features", comparison.features);
  std::vector<std::string> taken = {Quoted("tables", parts.tables),
                                    Quoted("dense parameters", parts.parameters)};
  std::erase(taken, "");
  LogInfo("taken: {}", fmt::join(taken, "; "));
  list("begin as initialised", parts.begin_anew);
  list("left", parts.left);
  const bool dense = initial.dense_states && !parts.other_parameters.empty() &&
                     spec.dense_optimizer.type == DenseOptimizerType::kAdam;
  const bool rows = initial.row_states && !parts.other_tables.empty() &&
                    InfoOf(spec.sparse_optimizer.type).counts_steps;
  if (dense || rows)
    LogWarning(
        "adam's bias correction counts the steps of the model for {} that begin as initialised, "
        "too: their first steps are several times too large; to avoid it, start from a run of no "
        "steps with sgd, which keeps the weights alone",
        dense && rows ? "dense parameters and tables"
        : dense       ? "dense parameters"
                      : "tables");
}

void Report(const CheckpointReader& reader, const InitialModel& initial, const TrainConfig& there,
            const TrainConfig& here, const RunSpec& spec, const DatasetSchema& schema) {
  int64_t taken = 0;
  for (const RowOrigins& origins : initial.tables) taken += origins.taken();
  LogInfo("starting from {} (step {}), sha256 {}", reader.dir(), reader.step(),
          IdentityOf(reader.manifest()));
  if (!reader.manifest().quantization.empty())
    LogWarning("{} holds rows in {}: they are not exact", reader.dir(),
               reader.manifest().quantization);
  LogInfo("rows of tables: {} taken, {}, {}", taken,
          CountText(spec.tables, initial, &RowOrigins::added, "new"),
          CountText(spec.tables, initial, &RowOrigins::dropped, "dropped"));
  LogInfo(
      "optimizer states: {}; {}",
      StatesText("dense", initial.dense_states, !InfoOf(spec.dense_optimizer.type).states.empty(),
                 there.optimizer.dense.type, here.optimizer.dense.type),
      StatesText("tables", initial.row_states, StateFloatsPerRow(spec.sparse_optimizer.type, 1) > 0,
                 there.optimizer.sparse.type, here.optimizer.sparse.type));
  WarnOfOtherLabels(there, here, schema);
  const double of_model = there.features.negatives_kept;
  if (const float shift = LogitShift(of_model, schema.negatives_kept); shift != 0)
    LogWarning(
        "the model was trained on {}, and this data has {}: until training has corrected it, "
        "logits are off by {:.4f}",
        NegativesText(of_model), NegativesText(schema.negatives_kept), -shift);
}

std::string ValueOr(const std::map<std::string, std::string>& map, const char* key,
                    const char* otherwise) {
  const auto found = map.find(key);
  return found == map.end() ? otherwise : found->second;
}

[[noreturn]] void Rethrow(const Error& error, const TrainConfig& config) {
  throw error.WithContext("cannot start from " + config.training.initialize_from);
}

}  // namespace

std::string IdentityOf(const CheckpointManifest& manifest) {
  return manifest.model_sha256.empty() ? manifest.manifest_sha256 : manifest.model_sha256;
}

void CheckInitialModel(const TrainConfig& config, const Dataset& dataset,
                       const std::string& run_dir, Communicator& comm) {
  if (config.training.initialize_from.empty()) {
    if (config.training.initialize_partly)
      Fail(ErrorCode::kConfig,
           "training.initialize_partly needs training.initialize_from: name the run or model to "
           "start from");
    return;
  }
  std::optional<CheckpointReader> reader;
  try {
    reader.emplace(FindModel(config.training.initialize_from).dir);
    CheckModel(*reader, config, dataset, comm);
  } catch (const Error& error) {
    Rethrow(error, config);
  }
  CheckSameModelAsBefore(run_dir, config.training.initialize_from, IdentityOf(reader->manifest()));
}

std::map<std::string, std::string> Initialize(const TrainConfig& config, const Dataset& dataset,
                                              ModelState* state, Communicator& comm) {
  try {
    CheckpointReader reader = OpenSameModel(config.training.initialize_from, comm);
    const TrainConfig there = ConfigOf(reader);
    ModelComparison comparison;
    InitialModel initial;
    RunWithHeartbeats(comm, [&] {
      comparison = CompareModels(reader, there, state->spec(), dataset.schema());
      initial = WhatIsTaken(there, config, state->spec(), dataset, comparison.parts);
      LoadInitialModel(reader, initial, state);
    });
    if (comm.rank() == 0) {
      Report(reader, initial, there, config, state->spec(), dataset.schema());
      ReportParts(comparison, initial, state->spec());
    }
    std::map<std::string, std::string> start = {
        {kInitializedFromKey, IdentityOf(reader.manifest())}};
    if (initial.dense_states)
      start[kEarlierStepsKey] = std::to_string(reader.step() + EarlierSteps(reader.run()));
    if (initial.row_states && InfoOf(state->spec().sparse_optimizer.type).counts_steps)
      start[kEarlierSparseStepsKey] =
          std::to_string(reader.step() + EarlierSparseSteps(reader.run()));
    return start;
  } catch (const Error& error) {
    Rethrow(error, config);
  }
}

std::map<std::string, std::string> StartOf(const std::map<std::string, std::string>& recorded) {
  std::map<std::string, std::string> start;
  for (const char* key : {kInitializedFromKey, kEarlierStepsKey, kEarlierSparseStepsKey})
    if (const auto found = recorded.find(key); found != recorded.end()) start.insert(*found);
  return start;
}

std::string InitializedFrom(const std::map<std::string, std::string>& recorded) {
  return ValueOr(recorded, kInitializedFromKey, "");
}

namespace {

int64_t StepsAt(const char* key, const std::map<std::string, std::string>& recorded) {
  const std::string text = ValueOr(recorded, key, "0");
  int64_t steps = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc() || stop != text.data() + text.size() || steps < 0)
    Fail(ErrorCode::kData, "a checkpoint's {} is '{}': it must be a number of steps", key,
         Escape(text));
  return steps;
}

}  // namespace

int64_t EarlierSteps(const std::map<std::string, std::string>& recorded) {
  return StepsAt(kEarlierStepsKey, recorded);
}

int64_t EarlierSparseSteps(const std::map<std::string, std::string>& recorded) {
  return StepsAt(kEarlierSparseStepsKey, recorded);
}

}  // namespace renzan
