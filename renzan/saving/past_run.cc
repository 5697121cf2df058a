#include "renzan/saving/past_run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/config/config_difference.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/saving/resume.h"

namespace renzan {
namespace {

// In the manifest of a model.
constexpr const char* kEndKey = "end";
constexpr std::string_view kStoppedEarly = "stopped early";

void CheckNotBeyond(const std::string& path, int64_t step, int64_t steps) {
  if (step > steps)
    Fail(ErrorCode::kConfig,
         "{} is at step {}, beyond the {} to train: raise training.epochs or "
         "training.max_steps, or choose another --run-dir",
         path, step, Counted(steps, "step"));
}

// A run directory without checkpoints may be reused only by the same run.
void CheckSameRunDirectory(const std::string& run_dir, const TrainConfig& config) {
  const std::string path = run_dir + "/manifest.json";
  if (IsMissing(path)) return;
  TrainConfig there;
  ReadConfigText(ReadRunManifest(path).config, path, {},
                 [&](ConfigFields& fields) { there.Describe(fields); });
  const std::string difference = DifferenceThatChangesBits(there, config);
  if (!difference.empty())
    Fail(ErrorCode::kCantCreate, "{} holds another run: {}; choose another --run-dir, or remove it",
         run_dir, difference);
}

void RestorePreviousModel(const std::string& model) {
  const std::string previous = PreviousModel(model);
  if (IsMissing(previous)) return;
  if (!IsMissing(model)) return RemoveTree(previous);
  if (FileSystem::Get().Rename(previous, model) != 0)
    FailErrno(errno, fmt::format("cannot rename {} to {}", previous, model));
}

// Whether a run of `steps` steps with this configuration would have ended with this model.
bool IsResultOf(const CheckpointEntry& model, const std::map<std::string, std::string>& run,
                const TrainingConfig& config, int64_t steps) {
  const auto ended_like = [&](bool stopped_early) {
    const auto end = DescribeEnd(config, steps, stopped_early);
    return !end.empty() && std::all_of(end.begin(), end.end(), [&](const auto& entry) {
      const auto recorded = run.find(entry.first);
      return recorded != run.end() && recorded->second == entry.second;
    });
  };
  if (run.contains(kEndKey)) return ended_like(false) || (model.step <= steps && ended_like(true));
  return model.step == steps;
}

// Inserts before the first of `paths` (newest first) that is older. A checkpoint of the same step
// comes first, because it holds more to resume from.
void InsertByStep(const CheckpointEntry& model, std::vector<std::string>& paths) {
  const auto place = std::find_if(paths.begin(), paths.end(), [&](const std::string& path) {
    return StepOfCheckpointName(path.substr(path.rfind('/') + 1)).value_or(0) < model.step;
  });
  paths.insert(place, model.path);
}

}  // namespace

std::map<std::string, std::string> DescribeEnd(const TrainingConfig& config, int64_t steps,
                                               bool stopped_early) {
  if (!config.watches_evaluations()) return {};
  const EarlyStoppingConfig& stopping = config.early_stopping;
  return {{kEndKey, fmt::format("{}, {}, patience {}, min_delta {}, keep_best {}",
                                stopped_early ? std::string(kStoppedEarly) : Counted(steps, "step"),
                                stopping.watched(), stopping.patience, stopping.min_delta,
                                config.keep_best)}};
}

std::string PreviousModel(const std::string& model) { return model + ".previous"; }

DirectoryLocks LockDirectories(const RunDirectories& directories, const JobAttempt& self,
                               const std::function<bool()>& stopped) {
  if (IsInStore(directories.run))
    Fail(
        ErrorCode::kConfig,
        "{}: a run directory must be on this machine (its logs are appended to); name one, and put "
        "the checkpoints into the store with checkpoint.dir or RENZAN_CHECKPOINT_DIR",
        directories.run);
  const std::string owner =
      fmt::format("process {} on {}, run directory {}", getpid(), HostName(), directories.run);
  const auto lock = [&](const std::string& dir) {
    return LockForAttempt(dir, owner, self, stopped);
  };
  return {.run = lock(directories.run), .checkpoints = lock(directories.checkpoints)};
}

PastRun FindPastRun(const RunDirectories& directories, const TrainConfig& config,
                    const std::map<std::string, std::string>& run, int64_t steps) {
  PastRun past;
  if (!IsInStore(directories.model)) RestorePreviousModel(directories.model);
  std::optional<CheckpointEntry> model;
  std::string damaged;  // what is wrong with it
  if (Storage::Of(directories.model).HasTree(directories.model, kCheckpointManifestName)) {
    model = DescribeCheckpoint(directories.model);
    if (model->unreadable)
      Fail(*model->unreadable, "{}; the model may be valid, so try again once it can be read",
           model->problem);
    if (!model->problem.empty()) {
      damaged = model->problem;
      model.reset();
    } else if (const auto ended = CheckpointManifest::Read(model->path).run;
               IsResultOf(*model, ended, config.training, steps)) {
      CheckCanContinue(model->path, config, run);
      CheckSameArithmetic(model->path, config, run);
      past.model_sha256 = model->model_sha256;
      past.model_step = model->step;
      past.stopped_early = ended.contains(kEndKey) && ended.at(kEndKey).starts_with(kStoppedEarly);
      return past;
    }
  }
  past.checkpoints = CheckpointsToResume(directories.checkpoints, model.has_value());
  if (!damaged.empty() && past.checkpoints.empty())
    Fail(ErrorCode::kData,
         "{}, and there is no checkpoint to go on from: restore it, or choose another --run-dir to "
         "train again",
         damaged);
  if (!damaged.empty()) LogWarning("{}; moved to {}", damaged, MoveAside(directories.model));
  if (model) InsertByStep(*model, past.checkpoints);
  if (past.checkpoints.empty()) CheckSameRunDirectory(directories.run, config);
  for (const std::string& path : past.checkpoints) CheckCanContinue(path, config, run);
  if (past.checkpoints.empty()) return past;
  CheckSameArithmetic(past.checkpoints[0], config, run);
  CheckNotBeyond(past.checkpoints[0], DescribeCheckpoint(past.checkpoints[0]).step, steps);
  return past;
}

}  // namespace renzan
