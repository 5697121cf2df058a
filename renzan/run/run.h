#pragma once

// One training run from configuration to saved model, on one worker: a new run, or one that resumes
// from its newest checkpoint. Every rank calls it; rank 0 owns the run directory:
//
//   manifest.json   resolved configuration, dataset fingerprints, versions, the model's SHA-256
//   metrics.jsonl   one JSON object per report and evaluation
//   events.out.tfevents.*   the same for TensorBoard
//   status.json     progress, replaced atomically
//   checkpoints/    unless the configuration names another directory
//   model/          the trained model
//   profile.json    a trace of some steps, on request

#include <cstdint>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/saving/requests.h"
#include "renzan/storage/attempt_lock.h"

namespace renzan {

struct RunOptions {
  std::string name;       // part of a run directory's name when the configuration has none
  std::string build_id;   // BuildId()
  int threads = 1;        // the resolved number
  bool terminal = false;  // draw a progress bar on stderr
  bool names_run_directory = true;  // the command or the configuration does
  std::string status_copy;          // where status.json is written as well; empty: nowhere
  bool must_resume = false;         // fail if there is no checkpoint
  bool restarted = false;           // an attempt of this run has been made before
  JobAttempt attempt;               // of a job system's job
  int64_t profile_steps = 0;        // trace this many steps into profile.json
  std::string stop_notice_path;     // of stop.json (stop_deadline.h); empty: none
  double grace_seconds = 0;         // between a stop request and SIGKILL; 0: unknown
  RunRequests* requests = nullptr;
  const Clock* clock = nullptr;
};

struct RunResult {
  enum class End {
    kTrained,
    kWasTrained,  // the run directory already held the model
    kStopped,     // as requested; a later run resumes from the last checkpoint
  };
  End end = End::kTrained;
  std::string run_dir;
  std::string model_sha256;  // empty when stopped
};

// Throws Error.
RunResult RunTraining(const TrainConfig& config, const RunOptions& options, Communicator& comm);

// An unused name for a run directory: "runs/NAME-2026-01-31T12:00:00Z".
std::string NewRunDirectory(const std::string& name, const Clock& clock);

}  // namespace renzan
