#include "renzan/cli/train/model_directory.h"

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/train/config.h"
#include "renzan/train/observe/run_manifest.h"

namespace renzan {
namespace {

constexpr const char* kManifest = "/manifest.json";

bool IsRun(const std::string& path) {
  return FileExists(path + "/model") || FileExists(path + "/checkpoints") ||
         FileExists(path + "/metrics.jsonl");
}

// A checkpoint by its name, even where its manifest is lost, or whatever has a manifest.
bool IsCheckpoint(const std::string& path) {
  return FileExists(path + kManifest) || StepOfCheckpointName(DescribeCheckpoint(path).name);
}

// Where a run keeps its checkpoints, as its manifest says.
std::string CheckpointsOf(const std::string& run) {
  const std::string path = run + kManifest;
  TrainConfig config;
  if (FileExists(path))
    ReadConfigText(ReadRunManifest(path).config, path, {},
                   [&](ConfigFields& fields) { config.Describe(fields); });
  return config.checkpoint.dir.empty() ? run + "/checkpoints" : config.checkpoint.dir;
}

}  // namespace

ModelPlace FindModel(const std::string& path) {
  const bool run = IsRun(path);
  if (run && FileExists(path + "/model" + kManifest)) return {path + "/model", ""};
  if (!run && IsCheckpoint(path)) return {path, ""};
  const std::string dir = run ? CheckpointsOf(path) : path;
  for (const CheckpointEntry& entry : ListCheckpoints(dir))
    if (entry.problem.empty())
      return {entry.path,
              run ? fmt::format("{} is a run without a model: using {}, its newest "
                                "checkpoint",
                                path, entry.name)
                  : fmt::format("using {}, the newest checkpoint of {}", entry.name, path)};
  if (run)
    Fail(ErrorCode::kData,
         "{} is a run that did not finish: there is neither a model nor a valid checkpoint in it",
         path);
  return {path, ""};
}

std::vector<CheckpointEntry> FindCheckpoints(const std::string& path) {
  if (!FileExists(path)) Fail(ErrorCode::kNoInput, "{} does not exist", path);
  std::vector<CheckpointEntry> entries;
  if (IsRun(path)) {
    entries = ListCheckpoints(CheckpointsOf(path));
    if (FileExists(path + "/model"))
      entries.insert(entries.begin(), DescribeCheckpoint(path + "/model"));
    return entries;
  }
  if (IsCheckpoint(path)) return {DescribeCheckpoint(path)};
  entries = ListCheckpoints(path);
  if (entries.empty())
    Fail(ErrorCode::kNoInput, "{} is neither a checkpoint, nor a run, nor does it hold checkpoints",
         path);
  return entries;
}

}  // namespace renzan
