#include "renzan/saving/model_directory.h"

#include <algorithm>
#include <filesystem>

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

// "; it holds runs: name one, such as runs/a", or "".
std::string RunsBelow(const std::string& path) {
  if (IsInStore(path)) return "";
  std::vector<std::string> names = Storage::Of(path).Names(path);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    if (IsRun(path + "/" + name))
      return fmt::format("; it holds runs: name one, such as {}/{}", path, name);
  return "";
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
  if (run && !IsAbsent(path + "/model" + kManifest)) return {path + "/model", ""};
  if (!run && IsCheckpoint(path)) return {path, ""};
  const std::string dir = run ? CheckpointsOfRun(path) : path;
  if (IsInStore(dir) && !IsAbsent(dir + "/model" + kManifest)) return {dir + "/model", ""};
  for (const CheckpointEntry& entry : ListCheckpoints(dir)) {
    if (entry.unreadable)
      Fail(*entry.unreadable,
           "cannot use the newest checkpoint of {}: {}; name an older one to use that", dir,
           entry.problem);
    if (entry.problem.empty())
      return {entry.path,
              run ? fmt::format("{} is an unfinished run: using {}, its newest "
                                "checkpoint",
                                path, entry.name)
                  : fmt::format("using {}, the newest checkpoint of {}", entry.name, path)};
  }
  if (run)
    Fail(ErrorCode::kData, "{} is an unfinished run: it has neither a model nor a valid checkpoint",
         path);
  if (IsAbsent(path))
    Fail(ErrorCode::kNoInput, "{} does not exist: name a run, a model or a checkpoint", path);
  if (IsAbsent(path + kManifest))
    Fail(ErrorCode::kNoInput, "{} is not a run, a model or a checkpoint: it has no manifest.json{}",
         path, RunsBelow(path));
  return {path, ""};
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
