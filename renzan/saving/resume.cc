#include "renzan/saving/resume.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/comm/outcome.h"
#include "renzan/config/config_difference.h"
#include "renzan/dense/load_parameters.h"
#include "renzan/embedding/load_tables.h"
#include "renzan/nn/isa.h"
#include "renzan/optim/finite.h"

namespace renzan {
namespace {

// Prefix of the keys in a manifest's `run` that identify datasets, whose content determines the
// bits.
constexpr const char* kDatasetPrefix = "dataset.";
constexpr const char* kIsaKey = "isa";

[[noreturn]] void FailNoneIsValid(const std::string& where) {
  Fail(ErrorCode::kData,
       "no checkpoint in {} is valid: restore one, or start a new run with another --run-dir",
       where);
}

// An unreadable checkpoint need not be corrupt. Falling back to an older one would lose steps
// because of a possibly transient error, so the user decides.
[[noreturn]] void FailCannotRead(ErrorCode code, const std::string& path, const std::string& why) {
  Fail(code,
       "cannot resume from {}: {}; it may be valid, so try again once it can be read, or move it "
       "away to resume from an older checkpoint",
       path, why);
}

}  // namespace

void LoadDense(CheckpointReader& reader, bool with_states, ModelState* model,
               const std::set<std::string>& except) {
  const auto read = [&](const std::string& key, const Parameter& parameter, AlignedBuffer& values) {
    reader.Read(key, parameter.shape,
                values.span().subspan(static_cast<size_t>(parameter.offset),
                                      static_cast<size_t>(parameter.size)));
  };
  const std::vector<Parameter>& parameters = model->model().layout().parameters();
  for (const Parameter& parameter : parameters)
    if (!except.contains(parameter.name)) read(parameter.name, parameter, model->parameters());
  reader.CheckFinite("the dense part", AllFinite(model->parameters().span()));
  if (!with_states) return;
  for (const Parameter& parameter : parameters) {
    if (parameter.is_statistic() || except.contains(parameter.name)) continue;
    for (DenseOptimizer::State& state : model->dense_optimizer().states())
      read(parameter.name + "/" + state.name, parameter, state.values);
  }
  for (DenseOptimizer::State& state : model->dense_optimizer().states())
    reader.CheckFinite(state.name, AllFinite(state.values.span()));
}

namespace {

// The base of an increment must be in the same directory, so a model elsewhere starts no lineage.
std::optional<CheckpointLineage> LineageOf(const CheckpointReader& reader) {
  const CheckpointManifest& mine = reader.manifest();
  const std::string name = reader.dir().substr(reader.dir().rfind('/') + 1);
  if (!StepOfCheckpointName(name)) return std::nullopt;
  if (const CheckpointManifest* base = reader.base_manifest())
    return CheckpointLineage{.base = *mine.base,
                             .costs = {.has_base = true,
                                       .base_bytes = base->bytes(),
                                       .increments = 1,
                                       .increment_bytes = mine.bytes()}};
  return CheckpointLineage{.base = CheckpointBase{name, mine.manifest_sha256},
                           .costs = {.has_base = true, .base_bytes = mine.bytes()}};
}

ResumePoint Load(const std::string& path, ModelState* model) {
  CheckpointReader reader(path);
  LoadDense(reader, true, model);
  LoadTables(reader, &model->embeddings(), model->pool());
  ResumePoint point{.name = path.substr(path.rfind('/') + 1),
                    .step = reader.step(),
                    .unix_seconds = static_cast<double>(reader.manifest().unix_ms) / 1000,
                    .lineage = LineageOf(reader),
                    .run = reader.run(),
                    .progress = ReadProgress(reader)};
  model->Changed();
  return point;
}

// On rank 0.
void MoveAsideWithWarning(const std::string& path) {
  try {
    LogWarning("moved corrupt {} to {}", path, MoveAside(path));
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
}

}  // namespace

ProgressTensors ReadProgress(CheckpointReader& reader) {
  ProgressTensors progress;
  for (const std::string& key : reader.keys())
    if (key.starts_with(kProgressPrefix)) progress[key] = reader.ReadI64(key);
  return progress;
}

std::vector<std::string> CheckpointsToResume(const std::string& dir, bool may_be_empty) {
  std::vector<std::string> paths;
  const std::vector<CheckpointEntry> entries = ListCheckpoints(dir);
  for (const CheckpointEntry& entry : entries) {
    if (entry.unreadable && paths.empty())
      FailCannotRead(*entry.unreadable, entry.path, entry.problem);
    if (entry.problem.empty()) {
      paths.push_back(entry.path);
    } else {
      LogWarning("skipping {}: {}", entry.path, entry.problem);
    }
  }
  if (paths.empty() && !entries.empty() && !may_be_empty) FailNoneIsValid(dir);
  return paths;
}

void CheckCanContinue(const std::string& path, const TrainConfig& config,
                      const std::map<std::string, std::string>& run) {
  const CheckpointManifest manifest = CheckpointManifest::Read(path);
  TrainConfig there;
  ReadConfigText(manifest.config, path + "/manifest.json", {},
                 [&](ConfigFields& fields) { there.Describe(fields); });
  const std::string difference = DifferenceThatChangesBits(there, config);
  if (!difference.empty())
    Fail(ErrorCode::kConfig,
         "{} is another run's checkpoint: {}; choose another --run-dir to start a new run", path,
         difference);
  for (const auto& [key, value] : run) {
    const auto recorded = manifest.run.find(key);
    if (!key.starts_with(kDatasetPrefix) || recorded == manifest.run.end() ||
        recorded->second == value)
      continue;
    Fail(ErrorCode::kConfig,
         "{} was trained on other data: {} is {} there and {} here; choose another --run-dir to "
         "start a new run",
         path, key, recorded->second, value);
  }
}

void CheckSameArithmetic(const std::string& path, const TrainConfig& config,
                         const std::map<std::string, std::string>& run) {
  const CheckpointManifest manifest = CheckpointManifest::Read(path);
  for (const auto& [key, value] : run) {
    const auto recorded = manifest.run.find(key);
    if (key.starts_with(kDatasetPrefix) || recorded == manifest.run.end() ||
        recorded->second == value)
      continue;
    if (key == kIsaKey && HasSameBits(recorded->second, value, PrecisionOf(config.numerics)))
      continue;
    if (key == kIsaKey && IsGpuClass(recorded->second) && IsGpuClass(value))
      Fail(ErrorCode::kConfig,
           "{} was computed on GPUs of class {}, and this one is of {}: its sums have other last "
           "bits; use GPUs of that class, device: cpu, or another --run-dir",
           path, recorded->second, value);
    LogWarning("{} is {} now and was {} when {} was written: the model may differ in its last bits",
               key, value, recorded->second, path);
  }
}

ResumePoint LoadNewest(const std::vector<std::string>& paths, ModelState& model, Communicator& comm,
                       const std::function<void(const std::string&)>& check_older) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    ResumePoint point;
    const std::optional<Error> mine = TryWithHeartbeats(comm, [&] {
      point = Load(*path, &model);
      if (check_older && path != paths.begin()) check_older(*path);
    });
    const std::vector<Outcome> outcomes = GatherOutcomes(comm, {.error = mine});
    bool valid = true;
    for (size_t rank = 0; rank < outcomes.size() && valid; ++rank) {
      const std::optional<Error>& error = outcomes[rank].error;
      if (!error) continue;
      valid = false;
      if (error->code() == ErrorCode::kIo)
        FailCannotRead(error->code(), *path, fmt::format("worker {}: {}", rank, error->what()));
      if (error->code() == ErrorCode::kNoInput)
        FailCannotRead(
            error->code(), *path,
            fmt::format(
                "worker {}: {} (all workers must share the directory and be able to read it)", rank,
                error->what()));
      if (error->code() != ErrorCode::kData)
        Fail(error->code(), "worker {}: {}", rank, error->what());
      if (comm.rank() == 0) LogWarning("skipping {}: {}", *path, error->what());
    }
    if (!valid) continue;
    if (comm.rank() == 0) std::for_each(paths.begin(), path, MoveAsideWithWarning);
    return point;
  }
  CHECK(!paths.empty());
  FailNoneIsValid(paths[0].substr(0, paths[0].rfind('/')));
}

void LoadModel(CheckpointReader& reader, ModelState* model) {
  LoadParameters(reader, model->model().layout(), model->parameters().span());
  LoadWeights(reader, model->embeddings().shards(), model->pool());
  model->embeddings().RowsWereSet();
  model->Changed();
}

}  // namespace renzan
