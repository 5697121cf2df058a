#pragma once

// Writes checkpoints in the background while training continues, and the model at the end.
//
// The training loop calls ShouldStop() after every step. At some of these calls the workers run a
// control sync (control_sync.h) and so reach the same decision at the same step: start a
// checkpoint, complete the one that all have written, or write a last one and stop.
//
// An I/O error fails the checkpoint (checkpoint_in_flight.h), not the training. Training ends if
// another run has taken over the directory.
//
// Every rank makes the same calls after the same steps. Not thread-safe.

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/checkpoint/manifest.h"
#include "renzan/checkpoint/policy.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/checkpoint_config.h"
#include "renzan/saving/checkpoint_in_flight.h"
#include "renzan/saving/control_sync.h"
#include "renzan/saving/requests.h"
#include "renzan/saving/snapshot.h"
#include "renzan/saving/stop_deadline.h"
#include "renzan/state/trained_state.h"

namespace renzan {

class CheckpointObserver {
 public:
  virtual ~CheckpointObserver() = default;
  virtual void OnCheckpoint(const CheckpointReport& report) = 0;
  // A stop was requested. `saves`: a last checkpoint is written next, because something is new
  // since the one before.
  virtual void OnStopping(int64_t step, bool saves) = 0;
};

// The full checkpoint that the next incremental ones can use as their base, and the bytes written
// since.
struct CheckpointLineage {
  CheckpointBase base;
  CheckpointCosts costs;  // of the base and its increments
};

class Checkpointer {
 public:
  struct Options {
    std::string dir;  // of the checkpoints
    CheckpointConfig config;
    std::string config_yaml;                 // for manifests
    std::map<std::string, std::string> run;  // for manifests
    int64_t best_step = -1;                  // of the best model so far; -1: none
    std::string stop_notice_path;            // of stop.json (stop_deadline.h)
    double grace_seconds = 0;                // between SIGTERM and SIGKILL; 0: unknown
    // The limit of CheckpointInFlight::copied_bytes() on this worker. If a control sync finds more,
    // all workers wait until at most half of it is left.
    int64_t most_copied_bytes = std::numeric_limits<int64_t>::max();
    DirectoryLock* lock = nullptr;    // of `dir`, on worker 0; outlives this object
    RunRequests* requests = nullptr;  // likewise
    const Clock* clock = nullptr;
    CheckpointObserver* observer = nullptr;  // set on worker 0 only
  };
  // The state to save besides the model. Every rank calls it when a checkpoint starts.
  using Progress = std::function<std::map<std::string, std::vector<int64_t>>()>;

  // `step`: where the model is now. `lineage`: the checkpoint it was loaded from, if any.
  // At `last_step` the model itself is saved, so no checkpoint is written there by schedule.
  Checkpointer(Options options, TrainedState& model, Communicator& comm, int64_t step,
               int64_t last_step, std::optional<CheckpointLineage> lineage, Progress progress);
  // Its destructor cancels a checkpoint in flight.
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Call it after every step (`done` steps are finished) and, during long work between steps, as
  // often as a stop request should be noticed. Returns true when training must stop; a last
  // checkpoint has then been attempted. Throws kSoftware on all ranks when the model is not finite;
  // such a model is never written.
  bool ShouldStop(int64_t done);

  // Declares the model, now at `step`, the best so far. Ensures that it has a checkpoint, which
  // retention keeps until another model is declared the best. Waits for a checkpoint in flight, but
  // not for the new one. Unlike other checkpoints this one is required: if it fails, ShouldStop and
  // SaveModel throw its error.
  void KeepBest(int64_t step);

  // Waits for a checkpoint in flight. Throws if the best model's checkpoint has failed.
  void Finish();

  // What is saved along with a model.
  struct ModelNotes {
    std::map<std::string, std::vector<int64_t>> progress;
    std::map<std::string, std::string> run;  // for its manifest, in addition to options.run
  };

  // Calls Finish(), then saves the model at `path`. Returns its SHA-256. On failure throws
  // what CheckpointInFlight::ThrowError() does; kSoftware on all ranks when the model is not
  // finite.
  std::string SaveModel(const std::string& path, int64_t step, ModelNotes notes = {});

 private:
  // Each worker's estimates, gathered before a checkpoint starts. seconds_left and has_base are
  // taken from worker 0.
  struct Plan {
    SnapshotBytes bytes;
    double full_seconds = 0, incremental_seconds = 0;  // at this worker's write speed
    double in_flight_seconds = 0;                      // to finish this worker's current files
    double seconds_left = 0;                           // until SIGKILL; infinite: unknown
    bool has_base = false;                             // the base still exists
  };

  ControlSyncResult SyncControl();
  void Advance(const ControlSyncResult& sync);
  bool CopiesAreFull();
  ControlSyncResult WaitForCopies(ControlSyncResult sync);
  void WaitUntilIdle();
  void Stop(int64_t done, int64_t stops);
  void StopSooner(int64_t stops);
  void CancelIfTooSlow();

  std::vector<Plan> GatherPlans() const;
  CheckpointKind ChooseKind() const;
  bool IsTooSlow() const;

  void BeginCheckpoint(int64_t step);
  void Begin(CheckpointInFlight::Request request);
  void RemoveOld(int64_t step);
  void Conclude();

  Options options_;
  TrainedState& model_;
  Communicator& comm_;
  Progress progress_;
  std::optional<CheckpointLineage> lineage_;
  int64_t last_step_;
  int64_t saved_step_;  // of the newest checkpoint, or the step at which the model was loaded
  int64_t best_step_;   // of the best model, whose checkpoint retention keeps; -1: none
  bool best_failed_ = false;
  bool has_failed_ = false;  // a checkpoint failed and may have left files in a store
  bool wanted_ = false;      // start a checkpoint as soon as none is in flight
  double last_begin_;
  bool stopping_ = false;
  int64_t stops_seen_ = 0;  // requests by all workers
  // Worker 0's counts: launchers may not pass the variables to every host.
  StopDeadline deadline_;
  // The next control sync happens when calls_since_sync_ (calls of ShouldStop) reaches
  // calls_to_next_.
  int64_t calls_since_sync_ = 0, calls_to_next_ = 1;
  double synced_at_;
  int64_t last_done_ = -1;
  bool between_steps_ = false;   // the last two calls were about the same step
  int64_t every_steps_at_ = -1;  // the last step at which checkpoint.every_steps asked for one

  bool waiting_for_copies_ = false;
  CheckpointInFlight in_flight_;  // last: its background work uses the others
};

}  // namespace renzan
