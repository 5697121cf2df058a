#pragma once

// Resolves a path on the command line to a model or to checkpoints.

#include <string>
#include <vector>

#include "renzan/checkpoint/directory.h"

namespace renzan {

struct ModelPlace {
  std::string dir;   // of a saved model or a checkpoint
  std::string note;  // tells the user if it is not a finished model; else empty
};

// Where the run in directory `run` keeps its checkpoints, as its manifest says. Throws Error kData
// or kConfig if that cannot be read.
std::string CheckpointsOfRun(const std::string& run);

// `path` is a model or a checkpoint, a run (its model if it is finished, else its newest valid
// checkpoint), or a directory of checkpoints (the newest valid one). A finished run that has gone
// on is unfinished again. Throws Error kData if a run has neither. Other paths are returned
// unchanged.
ModelPlace FindModel(const std::string& path);

// Throws kNoInput unless `path` is the directory of a run that has begun.
void CheckIsRun(const std::string& path);

// The directory of the run that `path` is, or is the model or a checkpoint of; empty if there is
// none, as of a model that was copied elsewhere.
std::string FindRun(const std::string& path);

// All checkpoints at `path`, newest first: the checkpoint itself, the model and the checkpoints of
// a run, or those of a directory. Throws Error kNoInput if there are none.
std::vector<CheckpointEntry> FindCheckpoints(const std::string& path);

}  // namespace renzan
