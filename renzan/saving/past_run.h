#pragma once

// What earlier attempts at the same run left in its run directory. For rank 0.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/storage/attempt_lock.h"
#include "renzan/storage/storage.h"

namespace renzan {

struct RunDirectories {
  std::string run, checkpoints;
  // In the run directory, or beside the checkpoints if those are in a store and each worker has a
  // run directory of its own.
  std::string model;
};

struct DirectoryLocks {
  std::unique_ptr<DirectoryLock> run, checkpoints;
};

// Creates both directories and keeps other processes from writing there while the locks live. Waits
// a while for a process that is about to end, and for an earlier attempt of `self`, until
// `stopped()`. Throws kCantCreate, which names that process, kTempFail if an earlier attempt goes
// on, and kConfig for a run directory in a store: its files are appended to.
DirectoryLocks LockDirectories(const RunDirectories& directories, const JobAttempt& self,
                               const std::function<bool()>& stopped);

struct PastRun {
  std::string model_sha256;              // empty unless the run is finished
  int64_t model_step = 0;                // of that model
  bool stopped_early = false;            // which ended the run
  std::vector<std::string> checkpoints;  // to resume from, newest first
};

// For the manifest of a model: how a run of `steps` steps ended, if evaluations decided which model
// to keep or when to stop. Empty for other runs.
std::map<std::string, std::string> DescribeEnd(const TrainingConfig& config, int64_t steps,
                                               bool stopped_early);

// `config` is the resolved configuration, `run` what this run writes into manifests, `steps` the
// number of steps to train. A finished run of fewer steps is resumed from its model, unless the
// longer run would have stopped early at the same step. Throws kConfig for checkpoints of another
// run or beyond `steps`, kCantCreate when the directory belongs to another run without checkpoints,
// kData when all checkpoints are corrupt, or the model is and there is none, kNoInput or kIo when
// the model or the newest checkpoint cannot be read and so may be valid.
PastRun FindPastRun(const RunDirectories& directories, const TrainConfig& config,
                    const std::map<std::string, std::string>& run, int64_t steps);

// Where a shorter run's model is kept while the longer run's model is being written. FindPastRun
// restores it if that was interrupted.
std::string PreviousModel(const std::string& model);

}  // namespace renzan
