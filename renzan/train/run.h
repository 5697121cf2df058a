#pragma once

// One training run from configuration to saved model, as seen by one worker. Every rank calls it
// alike; rank 0 owns the run directory:
//
//   manifest.json   resolved configuration, dataset fingerprints, versions, the model's SHA-256
//   metrics.jsonl   one JSON object per report and evaluation
//   events.out.tfevents.*   the same for TensorBoard
//   status.json     where the run is, replaced atomically
//   model/          the trained model

#include <string>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/train/config.h"

namespace renzan {

struct RunResult {
  std::string run_dir;
  std::string model_sha256;
};

// `name` becomes part of a run directory's name when the configuration has none. `threads` is the
// resolved number. `terminal`: draw a progress bar on stderr. Throws Error.
RunResult RunTraining(const TrainConfig& config, const std::string& name, int threads,
                      Communicator& comm, const Clock& clock, bool terminal);

}  // namespace renzan
