#include "renzan/train/checkpointing/resume.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/base/finite.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/train/checkpointing/snapshot.h"
#include "renzan/train/gather.h"
#include "renzan/train/heartbeat.h"

namespace renzan {
namespace {

// Keys of a manifest's `run` that begin so are datasets: what they hold decides the bits.
constexpr const char* kDatasetPrefix = "dataset.";

[[noreturn]] void FailNoneIsValid(const std::string& where) {
  Fail(ErrorCode::kData,
       "no checkpoint in {} is valid: restore one, or start anew with another --run-dir", where);
}

// What cannot be read is not corrupt. Going back to an older checkpoint would throw steps away for
// an error that may be gone a moment later, so that is for people to decide.
[[noreturn]] void FailCannotRead(const std::string& path, const std::string& why) {
  Fail(ErrorCode::kIo,
       "cannot resume from {}: {}; it may be valid, so start again when the disk is well, or move "
       "it "
       "away to resume from an older checkpoint",
       path, why);
}

// What was saved by a version that did not look may hold a NaN: no step leads on from there.
void CheckFinite(const std::string& path, HybridModel* model) {
  const auto check = [&](const std::string& what, std::span<const float> values) {
    if (!AllFinite(values))
      Fail(ErrorCode::kData, "{}: {} holds NaN or infinite values", path, what);
  };
  check("the dense part", model->parameters().span());
  for (DenseOptimizer::State& state : model->dense_optimizer().states())
    check(state.name, state.values.span());
  for (EmbeddingTable& table : model->embeddings().tables()) {
    check(TableKey(table.spec), table.weights.span());
    check(TableKey(table.spec) + "'s optimizer state", table.state.span());
  }
}

// Rows that increments written from now on must hold: those that differ from the base.
void RestoreDirtyRows(CheckpointReader& reader, HybridModel* model) {
  for (EmbeddingTable& table : model->embeddings().tables()) {
    table.dirty = RowSet(table.spec.num_embeddings);
    for (const int32_t row : reader.ReplacedRows(TableKey(table.spec) + ".weight"))
      table.dirty.Add(row);
  }
}

// Increments can only build on what is beside them.
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
  return CheckpointLineage{.base = {name, mine.manifest_sha256},
                           .costs = {.has_base = true, .base_bytes = mine.bytes()}};
}

ResumePoint Load(const std::string& path, HybridModel* model) {
  CheckpointReader reader(path);
  LoadModel(reader, true, model);
  CheckFinite(path, model);
  RestoreDirtyRows(reader, model);
  ResumePoint point{.name = path.substr(path.rfind('/') + 1),
                    .step = reader.step(),
                    .unix_seconds = static_cast<double>(reader.manifest().unix_ms) / 1000,
                    .lineage = LineageOf(reader),
                    .progress = {}};
  for (const std::string& key : reader.keys())
    if (!IsModelTensor(key)) point.progress[key] = reader.ReadI64(key);
  return point;
}

// Rank 0 alone.
void MoveAsideWithWarning(const std::string& path) {
  try {
    LogWarning("the corrupt {} is now {}", path, MoveAside(path));
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
}

}  // namespace

std::vector<std::string> CheckpointsToResume(const std::string& dir, bool something_else) {
  std::vector<std::string> paths;
  const std::vector<CheckpointEntry> entries = ListCheckpoints(dir);
  for (const CheckpointEntry& entry : entries) {
    if (entry.io_error && paths.empty()) FailCannotRead(entry.path, entry.problem);
    if (entry.problem.empty()) {
      paths.push_back(entry.path);
    } else {
      LogWarning("{} is passed over: {}", entry.path, entry.problem);
    }
  }
  if (paths.empty() && !entries.empty() && !something_else) FailNoneIsValid(dir);
  return paths;
}

void CheckCanContinue(const std::string& path, const TrainConfig& config,
                      const std::map<std::string, std::string>& run, bool warn) {
  const CheckpointManifest manifest = CheckpointManifest::Read(path);
  TrainConfig there;
  ReadConfigText(manifest.config, path + "/manifest.json", {},
                 [&](ConfigFields& fields) { there.Describe(fields); });
  const std::string difference = DifferenceThatChangesBits(there, config);
  if (!difference.empty())
    Fail(ErrorCode::kConfig,
         "{} is another run's checkpoint: {}; choose another --run-dir to start anew", path,
         difference);
  for (const auto& [key, value] : run) {
    const auto recorded = manifest.run.find(key);
    if (recorded == manifest.run.end() || recorded->second == value) continue;
    if (key.starts_with(kDatasetPrefix))
      Fail(ErrorCode::kConfig,
           "{} was trained on other data: {} is {} there and {} here; choose another --run-dir to "
           "start anew",
           path, key, recorded->second, value);
    if (warn)
      LogWarning("{} is {} here, {} when {} was written: the model may come out with other bits",
                 key, value, recorded->second, path);
  }
}

ResumePoint LoadNewest(const std::vector<std::string>& paths, HybridModel& model,
                       Communicator& comm) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    ResumePoint point;
    const std::optional<Error> mine = TryWithHeartbeats(comm, [&] { point = Load(*path, &model); });
    // Code and message; an empty text is no error.
    const std::vector<std::string> errors =
        GatherStrings(comm, mine ? fmt::format("{} {}", mine->exit_status(), mine->what()) : "");
    bool valid = true;
    for (size_t rank = 0; rank < errors.size() && valid; ++rank) {
      if (errors[rank].empty()) continue;
      valid = false;
      const ErrorCode code = static_cast<ErrorCode>(std::stoi(errors[rank]));
      const std::string what = errors[rank].substr(errors[rank].find(' ') + 1);
      if (code == ErrorCode::kIo) FailCannotRead(*path, fmt::format("worker {}: {}", rank, what));
      if (code != ErrorCode::kData)
        Fail(code, "worker {}: {} (the directory must be shared by all workers)", rank, what);
      if (comm.rank() == 0) LogWarning("{} is passed over: {}", *path, what);
    }
    if (!valid) continue;
    if (comm.rank() == 0) std::for_each(paths.begin(), path, MoveAsideWithWarning);
    return point;
  }
  CHECK(!paths.empty());
  FailNoneIsValid(paths[0].substr(0, paths[0].rfind('/')));
}

void LoadModel(CheckpointReader& reader, bool with_optimizer, HybridModel* model) {
  for (const Parameter& parameter : model->model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    reader.Read(parameter.name, parameter.shape, model->parameters().span().subspan(offset, size));
    if (!with_optimizer) continue;
    for (DenseOptimizer::State& state : model->dense_optimizer().states())
      reader.Read(parameter.name + "/" + state.name, parameter.shape,
                  state.values.span().subspan(offset, size));
  }
  for (EmbeddingTable& table : model->embeddings().tables()) {
    const std::string key = TableKey(table.spec) + ".weight";
    reader.Read(key, {table.spec.num_embeddings, table.spec.embedding_dim}, table.weights.span());
    if (with_optimizer && table.state.size() > 0)
      reader.Read(fmt::format("{}/{}", key, model->embeddings().state_name()), StateShape(table),
                  table.state.span());
  }
}

}  // namespace renzan
