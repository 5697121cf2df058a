#pragma once

// Going on from a checkpoint: finding the ones that a run can resume from, and loading the newest
// of them that is valid, whatever the placement that wrote it and whatever this one is.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/comm/communicator.h"
#include "renzan/train/checkpointing/checkpointer.h"
#include "renzan/train/config.h"
#include "renzan/train/hybrid_model.h"
#include "renzan/train/loop_state.h"

namespace renzan {

// Paths of the checkpoints in `dir` with nothing visibly wrong, newest first; a warning for each of
// the others. Reads manifests only. Throws kData when there are some but none to resume from,
// unless there is `something_else`; kIo when the disk cannot read one that is newer than all it
// can.
std::vector<std::string> CheckpointsToResume(const std::string& dir, bool something_else = false);

// Throws kConfig unless a run with this configuration, data and instruction set may resume from the
// checkpoint: it names the first key or dataset that would change the model's bits. Another
// instruction set or library is worth a warning, if `warn`. `run`: as this run writes it into its
// manifests.
void CheckCanContinue(const std::string& path, const TrainConfig& config,
                      const std::map<std::string, std::string>& run, bool warn);

struct ResumePoint {
  std::string name;  // of the checkpoint
  int64_t step = 0;
  double unix_seconds = 0;                   // when it was written
  std::optional<CheckpointLineage> lineage;  // none where it is no checkpoint but a model
  ProgressTensors progress;
};

// Loads the first of `paths` that is valid into the model, with optimizer states and the rows that
// later increments must hold; each worker reads and verifies what it owns. Corrupt ones are passed
// over and moved aside, with a warning: retention, which reads no data, would take them for valid.
// Throws kData when all are corrupt, and leaves them; what one worker cannot read at all (a file
// that others see, an error of the disk, memory) is no damage but an Error. Every rank calls it
// with the same paths.
ResumePoint LoadNewest(const std::vector<std::string>& paths, HybridModel& model,
                       Communicator& comm);

// The parameters and rows, and the optimizer states where `with_optimizer`, that this worker needs.
// Throws kData when a tensor is missing or has another shape.
void LoadModel(CheckpointReader& reader, bool with_optimizer, HybridModel* model);

}  // namespace renzan
