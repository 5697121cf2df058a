#pragma once

// One training run from configuration to saved model, as seen by one worker: a new one, or one that
// resumes from its newest checkpoint. Every rank calls it alike; rank 0 owns the run directory:
//
//   manifest.json   resolved configuration, dataset fingerprints, versions, the model's SHA-256
//   metrics.jsonl   one JSON object per report and evaluation
//   events.out.tfevents.*   the same for TensorBoard
//   status.json     where the run is, replaced atomically
//   checkpoints/    unless the configuration names another place
//   model/          the trained model

#include <string>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/train/checkpointing/requests.h"
#include "renzan/train/config.h"

namespace renzan {

struct RunOptions {
  std::string name;          // part of a run directory's name when the configuration has none
  std::string build_id;      // BuildId()
  int threads = 1;           // the resolved number
  bool terminal = false;     // draw a progress bar on stderr
  bool must_resume = false;  // having no checkpoint is an error
  double grace_seconds = 0;  // between a request to stop and a kill; 0: not known
  RunRequests* requests = nullptr;
  const Clock* clock = nullptr;
};

struct RunResult {
  enum class End {
    kTrained,
    kWasTrained,  // the run directory held the model already
    kStopped,     // as requested; a later run resumes from the last checkpoint
  };
  End end = End::kTrained;
  std::string run_dir;
  std::string model_sha256;  // empty when stopped
};

// Throws Error.
RunResult RunTraining(const TrainConfig& config, const RunOptions& options, Communicator& comm);

// A name for a run directory that nobody has: "runs/NAME-2026-01-31T12:00:00Z".
std::string NewRunDirectory(const std::string& name, const Clock& clock);

}  // namespace renzan
