#include "renzan/run/run_directories.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/observe/status_file.h"
#include "renzan/run/run.h"
#include "renzan/saving/model_directory.h"
#include "renzan/storage/storage.h"

namespace renzan {

std::string NewRunDirectory(const std::string& name, const Clock& clock) {
  const std::string stem = fmt::format("runs/{}-{}", name, FormatUtc(clock.UnixSeconds()));
  std::string dir = stem;
  for (int i = 2; FileExists(dir); ++i) dir = fmt::format("{}.{}", stem, i);
  return dir;
}

namespace {

void CheckHoldsNothingElse(const std::string& dir, const char* instead) {
  const char* what = nullptr;
  std::error_code ignored;
  if (!IsInStore(dir) && std::filesystem::is_regular_file(dir, ignored)) {
    what = "file";
  } else if (!Storage::Of(dir).IsMissing(dir + "/" + kDatasetManifestName)) {
    what = "dataset";
  } else if (const CheckpointEntry entry = DescribeCheckpoint(dir); entry.problem.empty()) {
    what = entry.model_sha256.empty() ? "checkpoint" : "model";
  }
  if (what != nullptr)
    Fail(ErrorCode::kCantCreate, "{} is a {}: choose another {} for this run", dir, what, instead);
}

// The directory that the configuration names. If it holds nothing, the run may have been begun with
// another one, such as that of a job of its own.
std::string ChooseCheckpoints(const CheckpointConfig& config, const std::string& run) {
  const std::string chosen = config.dir.empty() ? run + "/checkpoints" : config.dir;
  if (!Storage::Of(chosen).Names(chosen).empty()) return chosen;
  const std::string begun_with = CheckpointsOfRun(run);
  if (begun_with == chosen) return chosen;
  const std::vector<CheckpointEntry> checkpoints = ListCheckpoints(begun_with);
  if (checkpoints.empty()) {
    const bool begins_again = !FileExists(run + "/" + kModelName);
    if (begins_again && begun_with != run + "/checkpoints" &&
        Storage::Of(begun_with).IsMissing(begun_with))
      LogWarning("{} kept its checkpoints in {}, which no longer exists: it begins again", run,
                 begun_with);
    return chosen;
  }
  if (!config.dir.empty())
    Fail(ErrorCode::kConfig,
         "{} has its checkpoints in {} ({} is the newest), and checkpoint.dir or "
         "RENZAN_CHECKPOINT_DIR names {}, which has none: name the former to continue the run, or "
         "another --run-dir to begin a new one",
         run, begun_with, checkpoints[0].name, chosen);
  LogInfo("{} keeps its checkpoints in {}", run, begun_with);
  return begun_with;
}

}  // namespace

RunDirectories ChooseDirectories(const TrainConfig& config, const std::string& name,
                                 const Clock& clock, Communicator& comm) {
  std::string run = config.run_dir, checkpoints;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() != 0) return;
    if (run.empty()) run = NewRunDirectory(name, clock);
    CheckHoldsNothingElse(run, "--run-dir");
    checkpoints = ChooseCheckpoints(config.checkpoint, run);
    CheckHoldsNothingElse(checkpoints, "checkpoint.dir");
  });
  RunDirectories directories{.run = BroadcastString(comm, run),
                             .checkpoints = BroadcastString(comm, checkpoints)};
  directories.model = directories.run + "/" + kModelName;
  return directories;
}

bool HoldsState(const RunDirectories& directories) {
  return !Storage::Of(directories.checkpoints).Names(directories.checkpoints).empty() ||
         FileExists(directories.model);
}

bool SharesRunDirectory(const std::string& run_dir, Communicator& comm) {
  if (comm.world_size() == 1) return true;
  const std::string path = run_dir + "/.shared";
  std::string mark = fmt::format("{} {}", HostName(), getpid());
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0) WriteFileAtomically(path, mark);
  });
  mark = BroadcastString(comm, mark);
  char missing = 0;
  RunWithHeartbeats(comm, [&] { missing = FileExists(path) && ReadFile(path) == mark ? 0 : 1; });
  const std::vector<char> everywhere = AllGatherValues(comm, missing);
  if (comm.rank() == 0) FileSystem::Get().Unlink(path);
  return std::all_of(everywhere.begin(), everywhere.end(), [](char each) { return each == 0; });
}

void FailNothingToResume(const RunDirectories& directories) {
  Fail(ErrorCode::kNoInput, "{} has no checkpoint to resume from", directories.checkpoints);
}

PastRun AgreeOnPastRun(const RunDirectories& directories, const TrainConfig& config,
                       const std::map<std::string, std::string>& run, int64_t steps,
                       bool must_resume, Communicator& comm) {
  PastRun past;
  std::string paths;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() != 0) return;
    past = FindPastRun(directories, config, run, steps);
    if (must_resume && past.checkpoints.empty() && past.model_sha256.empty()) {
      if (!HasNoCheckpointYet(directories.run + "/status.json")) FailNothingToResume(directories);
      LogInfo("{} was stopped before its first checkpoint: it begins at step 0", directories.run);
    }
    for (const std::string& path : past.checkpoints) paths += path + "\n";
  });
  past.model_sha256 = BroadcastString(comm, past.model_sha256);
  past.model_step = AllGatherValues(comm, past.model_step)[0];
  past.stopped_early = AllGatherValues(comm, static_cast<char>(past.stopped_early))[0] != 0;
  paths = BroadcastString(comm, paths);
  past.checkpoints.clear();
  for (size_t begin = 0, end; begin < paths.size(); begin = end + 1) {
    end = paths.find('\n', begin);
    past.checkpoints.push_back(paths.substr(begin, end - begin));
  }
  return past;
}

void RecordFinished(const std::string& run_dir, int64_t steps, const std::string& model_sha256,
                    const Clock& clock) {
  const std::string path = run_dir + "/manifest.json";
  if (!FileExists(path)) return;
  RunManifest manifest = ReadRunManifest(path);
  if (manifest.model_sha256 == model_sha256) return;
  manifest.model_sha256 = model_sha256;
  manifest.steps = steps;
  WriteRunManifest(path, manifest);
  WriteStatusFile(run_dir + "/status.json", {.state = "done",
                                             .step = steps,
                                             .steps = steps,
                                             .updated_unix_seconds = clock.UnixSeconds()});
}

}  // namespace renzan
