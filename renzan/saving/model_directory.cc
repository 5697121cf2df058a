#include "renzan/saving/model_directory.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/config/train_config.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr const char* kManifest = "/manifest.json";

bool IsAbsent(const std::string& path) { return Storage::Of(path).IsMissing(path); }

// In a store, a model may also lie beside checkpoints.
bool IsRun(const std::string& path) {
  return (!IsInStore(path) && !IsAbsent(path + "/model")) || !IsAbsent(path + "/checkpoints") ||
         !IsAbsent(path + "/metrics.jsonl");
}

// A directory with the name of a checkpoint, even if its manifest is missing, or with a manifest.
bool IsCheckpoint(const std::string& path) {
  return !IsAbsent(path + kManifest) || StepOfCheckpointName(DescribeCheckpoint(path).name);
}

// What is needed is a directory; a file is the most likely of the wrong ones to be named.
void CheckIsNoFile(const std::string& path, const char* what) {
  std::error_code ignored;
  if (!IsInStore(path) && std::filesystem::is_regular_file(path, ignored))
    Fail(ErrorCode::kNoInput, "{} is a file: name {}, which is a directory", path, what);
}

// A run in the directory `path`, or "".
std::string RunIn(const std::string& path) {
  if (IsInStore(path)) return "";
  const std::string place = path.empty() ? "." : path;
  std::vector<std::string> names = Storage::Of(place).Names(place);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    if (IsRun(place + "/" + name)) return path.empty() ? name : path + "/" + name;
  return "";
}

// "; it holds runs: name one, such as runs/a", or "".
std::string RunsBelow(const std::string& path) {
  const std::string run = RunIn(path);
  return run.empty() ? "" : fmt::format("; it holds runs: name one, such as {}", run);
}

// The same for a path that does not exist, perhaps because it is misspelt.
std::string RunsBeside(const std::string& path) {
  const std::string run = RunIn(std::filesystem::path(path).parent_path().string());
  return run.empty() ? "" : fmt::format("; there is {}, for one", run);
}

// The model of a run (empty: of none) that keeps its checkpoints in `checkpoints`: in a store, it
// may lie beside them.
std::optional<CheckpointEntry> SavedModel(const std::string& run, const std::string& checkpoints) {
  for (const std::string& place : {run, IsInStore(checkpoints) ? checkpoints : ""})
    if (!place.empty() && !IsAbsent(place + "/model" + kManifest))
      return DescribeCheckpoint(place + "/model");
  return std::nullopt;
}

// False once a finished run goes on.
bool IsRecordedAsFinished(const std::string& run) {
  return !IsAbsent(run + kManifest) && !ReadRunManifest(run + kManifest).model_sha256.empty();
}

// Whether the run has gone on since it saved `model`. Steps alone do not tell: keep_best saves the
// model of an earlier step, after all checkpoints.
bool IsOfALongerRun(const CheckpointEntry& entry, const CheckpointEntry& model) {
  const bool has_time = entry.kind.has_value();  // else it cannot be used anyway
  return entry.step > model.step && (!has_time || entry.unix_ms > model.unix_ms);
}

std::string NoteOn(const std::string& path, bool is_run,
                   const std::optional<CheckpointEntry>& model, const CheckpointEntry& used) {
  if (model)
    return fmt::format("{} has gone on since its model of step {}: using {}, its newest checkpoint",
                       path, model->step, used.name);
  if (is_run)
    return fmt::format("{} is an unfinished run: using {}, its newest checkpoint", path, used.name);
  return fmt::format("using {}, the newest checkpoint of {}", used.name, path);
}

}  // namespace

std::string CheckpointsOfRun(const std::string& run) {
  const std::string path = run + kManifest;
  TrainConfig config;
  if (!IsAbsent(path))
    ReadConfigText(ReadRunManifest(path).config, path, {},
                   [&](ConfigFields& fields) { config.Describe(fields); });
  return config.checkpoint.dir.empty() ? run + "/checkpoints" : config.checkpoint.dir;
}

ModelPlace FindModel(const std::string& path) {
  CheckIsNoFile(path, "a run, a model or a checkpoint");
  const bool run = IsRun(path);
  if (!run && IsCheckpoint(path)) return {path, ""};
  const std::string dir = run ? CheckpointsOfRun(path) : path;
  const std::optional<CheckpointEntry> model = SavedModel(run ? path : "", dir);
  // Nothing else is looked at then: checkpoints may be in a store that is out of reach.
  if (model && (!model->problem.empty() || (run && IsRecordedAsFinished(path))))
    return {model->path, ""};
  for (const CheckpointEntry& entry : ListCheckpoints(dir)) {
    if (model && !IsOfALongerRun(entry, *model)) continue;
    if (entry.unreadable)
      Fail(*entry.unreadable,
           "cannot use the newest checkpoint of {}: {}; name an older one to use that", dir,
           entry.problem);
    if (entry.problem.empty()) return {entry.path, NoteOn(path, run, model, entry)};
  }
  if (model) return {model->path, ""};
  if (run)
    Fail(ErrorCode::kData,
         "{} is an unfinished run: it has neither a model nor a valid checkpoint; `renzan train` "
         "with the same configuration and --run-dir {} goes on with it",
         path, path);
  if (IsAbsent(path))
    Fail(ErrorCode::kNoInput, "{} does not exist: name a run, a model or a checkpoint{}", path,
         RunsBeside(path));
  if (IsAbsent(path + kManifest))
    Fail(ErrorCode::kNoInput, "{} is not a run, a model or a checkpoint: it has no manifest.json{}",
         path, RunsBelow(path));
  return {path, ""};
}

void CheckIsRun(const std::string& path) {
  CheckIsNoFile(path, "a run");
  if (IsAbsent(path)) Fail(ErrorCode::kNoInput, "{} does not exist{}", path, RunsBeside(path));
  if (IsAbsent(path + kManifest))
    Fail(ErrorCode::kNoInput, "{} is not a run: it has no manifest.json{}", path, RunsBelow(path));
}

std::string FindRun(const std::string& path) {
  if (IsInStore(path)) return "";  // runs are on disks
  std::error_code error;
  std::filesystem::path dir = std::filesystem::absolute(path, error).lexically_normal();
  if (!dir.has_filename()) dir = dir.parent_path();
  constexpr int kDeepest = 2;  // RUN/checkpoints/step-1
  for (int up = 0; up <= kDeepest; ++up, dir = dir.parent_path())
    if (IsRun(dir.string()) && !IsAbsent(dir.string() + kManifest)) return dir.string();
  return "";
}

std::vector<CheckpointEntry> FindCheckpoints(const std::string& path) {
  if (IsAbsent(path)) Fail(ErrorCode::kNoInput, "{} does not exist", path);
  CheckIsNoFile(path, "a run, a checkpoint or a directory of checkpoints");
  std::vector<CheckpointEntry> entries;
  const bool run = IsRun(path);
  if (!run && IsCheckpoint(path)) return {DescribeCheckpoint(path)};
  const std::string dir = run ? CheckpointsOfRun(path) : path;
  entries = ListCheckpoints(dir);
  const auto add_model_in = [&](const std::string& place) {
    if (!IsAbsent(place + "/model"))
      entries.insert(entries.begin(), DescribeCheckpoint(place + "/model"));
  };
  if (IsInStore(dir)) add_model_in(dir);
  if (run) {
    add_model_in(path);
    return entries;
  }
  if (entries.empty())
    Fail(ErrorCode::kNoInput, "{} is not a checkpoint, a run or a directory of checkpoints{}", path,
         RunsBelow(path));
  return entries;
}

}  // namespace renzan
