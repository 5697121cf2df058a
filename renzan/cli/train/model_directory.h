#pragma once

// What a path on the command line stands for, where a model or checkpoints are wanted.

#include <string>
#include <vector>

#include "renzan/checkpoint/directory.h"

namespace renzan {

struct ModelPlace {
  std::string dir;   // of a saved model or a checkpoint
  std::string note;  // what people should know: that it is no finished model. Empty otherwise
};

// `path` is a model or a checkpoint, a run (its model, or its newest valid checkpoint where it has
// none), or a directory of checkpoints (the newest valid one). Throws Error kData where a run or a
// directory holds nothing of the kind. Other paths come back as they are.
ModelPlace FindModel(const std::string& path);

// All checkpoints that `path` stands for, newest first: itself, those of a run and, before them,
// its model, or those of a directory. Throws Error kNoInput where there is nothing of the kind.
std::vector<CheckpointEntry> FindCheckpoints(const std::string& path);

}  // namespace renzan
