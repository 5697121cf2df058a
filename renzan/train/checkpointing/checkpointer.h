#pragma once

// Writes checkpoints while training goes on, and the model at the end. After every step the loop
// asks it whether to stop; now and then it calls the roll, and what the workers then decide
// together is one of: begin a checkpoint, end one that everybody has written, stop after a last
// one.
//
// A checkpoint in flight goes through two phases: every worker writes its files in the background;
// when all have, worker 0 writes the manifest and lets the directory appear, also in the
// background. An I/O error ends the checkpoint, not the training.
//
// Every rank makes the same calls after the same steps. Not thread-safe.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/background_task.h"
#include "renzan/base/clock.h"
#include "renzan/checkpoint/manifest.h"
#include "renzan/checkpoint/policy.h"
#include "renzan/checkpoint/writer.h"
#include "renzan/comm/communicator.h"
#include "renzan/train/checkpointing/control_sync.h"
#include "renzan/train/checkpointing/requests.h"
#include "renzan/train/checkpointing/snapshot.h"
#include "renzan/train/config.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

// What became of a checkpoint.
struct CheckpointReport {
  std::string name;  // "step-00001234"
  int64_t step = 0;
  CheckpointKind kind = CheckpointKind::kFull;
  uint64_t bytes = 0;
  double write_seconds = 0;  // from its begin until it was durable
  double stall_seconds = 0;  // of these, those in which training waited
  std::string error;         // why it does not exist, if it does not
};

class CheckpointObserver {
 public:
  virtual ~CheckpointObserver() = default;
  virtual void OnCheckpoint(const CheckpointReport& report) = 0;
  // A stop was asked for; what follows is the last checkpoint.
  virtual void OnStopping(int64_t step) = 0;
};

// The full checkpoint on which the next incremental ones can build, and what those since have cost.
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
    int64_t best_step = -1;                  // of the best model so far, which has a checkpoint
    double grace_seconds = 0;                // between SIGTERM and SIGKILL; 0: not known
    RunRequests* requests = nullptr;         // outlives this object
    const Clock* clock = nullptr;
    CheckpointObserver* observer = nullptr;  // worker 0's; null elsewhere
  };
  // What is to be resumed beside the model; called by every rank when a checkpoint begins.
  using Progress = std::function<std::map<std::string, std::vector<int64_t>>()>;

  // The model is at `step`. `lineage`: what it was loaded from, if from a checkpoint.
  // The last step is the saved model's and gets no checkpoint of its own, unless asked for.
  Checkpointer(Options options, HybridModel& model, Communicator& comm, int64_t step,
               int64_t last_step, std::optional<CheckpointLineage> lineage, Progress progress);
  // Gives up a checkpoint in flight.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // `done` steps are done. Whether to stop here; a last checkpoint has then been tried. To be
  // called after every step and, between steps, as often as a stop should be noticed. Throws
  // kSoftware on all ranks when the model is not finite, before anything of it is written.
  bool ShouldStop(int64_t done);

  // The model, which is at `step`, is the best so far: makes sure that there is a checkpoint of it,
  // which retention spares until another one is the best. Waits for a checkpoint in flight, and not
  // for this one. Unlike others this one must come to be: ShouldStop and SaveModel throw its error.
  void KeepBest(int64_t step);

  // Waits for a checkpoint in flight. Throws where it was the best model's, and failed.
  void Finish();

  // What is saved with a model beside it.
  struct ModelNotes {
    std::map<std::string, std::vector<int64_t>> progress;
    std::map<std::string, std::string> run;  // for its manifest, beside options.run
  };

  // Finishes, then saves the model at `path`. Returns its SHA-256. Throws kCantCreate or kIo where
  // it failed, kUnavailable on the other ranks; kSoftware on all of them when the model is not
  // finite.
  std::string SaveModel(const std::string& path, int64_t step, ModelNotes notes = {});

 private:
  enum class Phase { kIdle, kWriting, kCommitting };
  struct InFlight {
    CheckpointReport report;
    std::string path;
    bool is_model = false;
    ModelNotes notes;  // of a model
    std::unique_ptr<ModelSnapshot> snapshot;
    std::unique_ptr<CheckpointWriter> writer;  // worker 0's
    std::string files;                         // this worker's, one JSON text per line
    uint64_t bytes = 0;                        // this worker's, an estimate
    double began = 0, written = 0;             // when, by this worker
    std::string model_sha256, manifest_sha256;
    std::optional<Error> error;
    bool failed_here = false;  // and not only elsewhere
  };
  // What the workers tell each other before a checkpoint begins.
  struct Plan {
    SnapshotBytes bytes;
    double full_seconds = 0, incremental_seconds = 0;  // at the speed measured here
    double in_flight_seconds = 0;                      // until this worker's part is written
    double seconds_left = 0;                           // of the grace; worker 0's counts
    bool has_base = false;                             // it is still there; worker 0's counts
  };

  ControlSyncResult SyncControl();
  void Advance(const ControlSyncResult& roll);
  void WaitUntilIdle();
  [[noreturn]] void ThrowErrorInFlight() const;
  void Stop(int64_t done);

  std::vector<Plan> GatherPlans() const;
  bool ChooseIncremental() const;
  bool TooLateForTheOneInFlight() const;

  void Begin(const std::string& path, int64_t step, bool incremental, bool is_model,
             ModelNotes notes = {});
  void WriteFiles(const std::map<std::string, std::vector<int64_t>>& progress);
  void EndWriting();
  void Commit(std::vector<CheckpointFile> files);
  void EndCommitting();
  void MakeRoom(const std::string& path, bool is_model);
  void Conclude(std::optional<Error> error);
  SnapshotOptions OptionsFor(bool incremental) const;

  Options options_;
  HybridModel& model_;
  Communicator& comm_;
  Progress progress_;
  std::optional<CheckpointLineage> lineage_;
  int64_t last_step_;
  int64_t saved_step_;  // of the newest checkpoint that this run knows
  int64_t best_step_;   // whose checkpoint stays; -1: none
  bool best_failed_ = false;
  bool wanted_ = false;
  double last_begin_;
  double bytes_per_second_;  // this worker's, measured
  uint64_t progress_bytes_ = 0;
  std::optional<double> stop_seen_;
  // Calls of ShouldStop since the last control sync, when that was, and how many to wait for the
  // next.
  int64_t calls_ = 0, calls_to_next_ = 1;
  double rolled_at_;
  int64_t last_done_ = -1;
  bool between_steps_ = false;  // the last call was about the same step as the one before
  int64_t begun_by_steps_ = -1;

  Phase phase_ = Phase::kIdle;
  InFlight flight_;
  std::atomic<bool> cancel_{false};
  BackgroundTask task_;  // after what it uses
};

}  // namespace renzan
