#pragma once

// What a run directory and its checkpoints hold from earlier attempts at the same run. For rank 0.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/file_lock.h"
#include "renzan/train/config.h"

namespace renzan {

struct RunDirectories {
  std::string run, checkpoints;
  std::string model() const { return run + "/model"; }
};

struct DirectoryLocks {
  std::unique_ptr<FileLock> run, checkpoints;
};

// Creates both and makes sure that no other process writes there while the locks live. Waits a
// moment for one that is about to end. Throws kCantCreate, which names the other.
DirectoryLocks LockDirectories(const RunDirectories& directories);

struct PastRun {
  std::string model_sha256;              // of the model, if the run is finished
  int64_t model_step = 0;                // of that model
  std::vector<std::string> checkpoints;  // to resume from, newest first
};

// What the manifest of a model says of a run whose evaluations decided which model it is, or when
// training stopped: of a run that was to train `steps`, and stopped early or not. Empty for others.
std::map<std::string, std::string> DescribeEnd(const TrainingConfig& config, int64_t steps,
                                               bool stopped_early);

// `config` is the resolved one, `run` what this run writes into manifests, `steps` how many it
// trains. The model of a finished run of fewer steps is one to resume from, unless the longer one
// would have stopped early where it did. Throws kConfig for
// checkpoints of another run or beyond `steps`, kCantCreate where another run left no checkpoint,
// kData when all checkpoints are corrupt.
PastRun FindPastRun(const RunDirectories& directories, const TrainConfig& config,
                    const std::map<std::string, std::string>& run, int64_t steps);

// Where the model of a shorter run is while the longer one's is being written: FindPastRun brings
// it back if that was interrupted.
std::string PreviousModel(const std::string& model);

}  // namespace renzan
