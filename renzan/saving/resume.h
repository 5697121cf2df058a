#pragma once

// Resuming from a checkpoint: finds the checkpoints that a run can resume from and loads the newest
// valid one. The numbers of workers that wrote it and that load it may differ.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/saving/checkpointer.h"
#include "renzan/saving/progress_tensors.h"
#include "renzan/state/model_state.h"

namespace renzan {

// Paths of the checkpoints in `dir` whose manifests are valid, newest first. Logs a warning for
// each of the others. Throws kData when there are checkpoints but none is valid, unless
// `may_be_empty`; kNoInput or kIo when the newest one cannot be read and so may be valid.
std::vector<std::string> CheckpointsToResume(const std::string& dir, bool may_be_empty = false);

// Throws kConfig unless a run with this configuration and data may resume from the checkpoint; the
// message names the first key or dataset that would change the model's bits. `run`: what this run
// writes into its manifests.
void CheckCanContinue(const std::string& path, const TrainConfig& config,
                      const std::map<std::string, std::string>& run);

// For the checkpoint that is resumed from: throws kConfig if it was computed on GPUs of another
// class, and logs a warning for another instruction set, build or library.
void CheckSameArithmetic(const std::string& path, const TrainConfig& config,
                         const std::map<std::string, std::string>& run);

struct ResumePoint {
  std::string name;  // of the checkpoint
  int64_t step = 0;
  double unix_seconds = 0;                   // when it was written
  std::optional<CheckpointLineage> lineage;  // none if it is a saved model
  std::map<std::string, std::string> run;    // what its manifest records of the run
  ProgressTensors progress;
};

// Loads the first valid checkpoint of `paths` into the model, including optimizer states and the
// sets of dirty rows. Each worker reads and verifies the part it owns. Corrupt checkpoints are
// skipped with a warning and moved aside; retention does not read their data and would count them
// as valid. Throws kData when all are corrupt, and then moves none. What a worker cannot read at
// all (a file missing on its host, denied access, an I/O error, not enough memory) is not
// corruption and throws its Error. Every rank calls it with the same paths. `check_older`: called
// with the path of the loaded one if it is not the first; an Error from it is not corruption
// either, unless it is kData.
ResumePoint LoadNewest(const std::vector<std::string>& paths, ModelState& model, Communicator& comm,
                       const std::function<void(const std::string&)>& check_older = {});

// The state of the run that wrote it, apart from the model. Throws as CheckpointReader does.
ProgressTensors ReadProgress(CheckpointReader& reader);

// Loads the parameters and rows that this worker owns, without optimizer states. Throws kData when
// a tensor is missing or has another shape.
void LoadModel(CheckpointReader& reader, ModelState* model);

// Loads the dense part, with the states of its optimizer if `with_states`, but not the parameters
// `except`, by name. Throws kData, also for values that are not finite.
void LoadDense(CheckpointReader& reader, bool with_states, ModelState* model,
               const std::set<std::string>& except = {});

}  // namespace renzan
