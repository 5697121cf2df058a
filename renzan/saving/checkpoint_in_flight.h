#pragma once

// One checkpoint, or the model at the end, on its way from the workers' memory to a directory that
// appears complete or not at all, while training continues.
//
// First every worker writes its files. If checkpoint.stage is set and the directory is in a store,
// it writes them to a local disk and then uploads them. Once all have finished, worker 0 writes the
// manifest and publishes the directory. All of this happens in the background, between control
// syncs (control_sync.h) at which the workers agree that a phase has ended. An I/O error ends the
// checkpoint and is not thrown.
//
// Every rank makes the same calls after the same steps. Not thread-safe.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/background_task.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/checkpoint/manifest.h"
#include "renzan/checkpoint/writer.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/outcome.h"
#include "renzan/saving/control_sync.h"
#include "renzan/saving/snapshot.h"
#include "renzan/state/trained_state.h"

namespace renzan {

// How a checkpoint ended.
struct CheckpointReport {
  std::string name;  // "step-00001234"
  int64_t step = 0;
  CheckpointKind kind = CheckpointKind::kFull;
  uint64_t bytes = 0;
  double write_seconds = 0;  // from its start until it was durable
  double stall_seconds = 0;  // the part of it during which training waited
  int64_t copied_bytes = 0;  // of changed rows, the most at a time on this worker
  std::string error;         // why it failed; empty on success
};

class CheckpointInFlight {
 public:
  struct Options {
    std::string dir;                // of the checkpoints
    std::string stage;              // checkpoint.stage
    std::string quantize;           // checkpoint.quantize
    bool sparse = true;             // checkpoint.sparse
    DirectoryLock* lock = nullptr;  // of `dir`, on worker 0; outlives this object
    const Clock* clock = nullptr;
  };
  using Progress = std::map<std::string, std::vector<int64_t>>;
  struct Request {
    std::string path;
    CheckpointManifest manifest;         // its kind, step, base, run and configuration
    bool is_model = false;               // the trained model: its values are hashed
    bool training_waits = false;         // writing may then use all processors
    std::function<Progress()> progress;  // what is saved besides the model; called by Begin()
    std::function<void()> on_durable;    // called in the background, on worker 0
  };

  CheckpointInFlight(Options options, TrainedState& model, Communicator& comm);
  // Cancels it.
  ~CheckpointInFlight();
  CheckpointInFlight(const CheckpointInFlight&) = delete;
  CheckpointInFlight& operator=(const CheckpointInFlight&) = delete;

  // Starts a checkpoint. Call it only while idle(). The checkpoint may end at once. Throws
  // kSoftware on all ranks when the model is not finite.
  void Begin(Request request);
  // Call it after every control sync. Returns true when this has ended it.
  bool Advance(const ControlSyncResult& sync);
  // Removes what has been written; it then ends with an error.
  void Cancel() { cancel_ = true; }
  // Training waits from now on.
  void HurryUp() { request_.training_waits = true; }

  bool idle() const { return phase_ == Phase::kIdle; }
  bool is_writing() const { return phase_ == Phase::kWriting || phase_ == Phase::kUploading; }
  // This worker has nothing to do for it until the next phase.
  bool task_finished() const { return task_.finished(); }
  void WaitForTask(double seconds) { task_.WaitFor(seconds); }

  // Bytes of this worker's rows that were copied because training was about to change them, and
  // that are not written yet.
  int64_t copied_bytes();
  void AddStall(double seconds) { report_.stall_seconds += seconds; }

  // Of the one in flight, or the last.
  const CheckpointReport& report() const { return report_; }
  const std::optional<Error>& error() const { return error_; }
  bool is_model() const { return request_.is_model; }
  bool cancelled() const { return cancel_; }
  const std::string& manifest_sha256() const { return manifest_sha256_; }
  const std::string& model_sha256() const { return model_sha256_; }
  // Throws the error on all ranks. If it is a machine's failure, the ranks where it did not occur
  // throw kUnavailable instead, so that a launcher counts only the worker whose machine failed.
  [[noreturn]] void ThrowError() const;
  // Another run writes to the same directory in a store: this one must not go on.
  bool taken_over() const { return taken_over_; }

  // For estimates of this worker's part.
  SnapshotOptions OptionsOf(CheckpointKind kind) const;
  // Of the last checkpoint, or assumed before the first:
  double bytes_per_second() const { return bytes_per_second_; }
  bool speed_is_measured() const { return speed_is_measured_; }
  double SecondsLeft() const;  // until its current files are written
  // Rows that were dirty when it started.
  uint64_t dirty_bytes() const { return dirty_bytes_; }
  uint64_t progress_bytes() const { return progress_bytes_; }

 private:
  enum class Phase { kIdle, kWriting, kUploading, kCommitting };

  bool IsStaged() const;
  void StartTask(std::function<void()> task);
  std::vector<Outcome> GatherTasks(const std::string& result);
  void ClearPath();
  void WriteFiles(const Progress& progress);
  void EndWriting();
  void UploadFiles();
  void EndUploading();
  void StartCommitting();
  void Commit();
  void EndCommitting();
  bool EndIfAnyFailed(const std::vector<Outcome>& outcomes);
  void End(std::optional<Error> error);
  void MeasureSpeed();

  Options options_;
  TrainedState& model_;
  ThreadPool* pool_ = nullptr;  // of its state, from Begin() on
  Communicator& comm_;
  std::string stage_;  // this worker's directory below options.stage
  double bytes_per_second_;
  bool speed_is_measured_ = false;
  bool taken_over_ = false;
  uint64_t progress_bytes_ = 0;

  Phase phase_ = Phase::kIdle;
  Request request_;
  CheckpointReport report_;
  std::unique_ptr<ModelSnapshot> snapshot_;
  std::unique_ptr<CheckpointWriter> writer_;      // worker 0 only
  std::string location_;                          // where all workers write their files
  std::string files_;                             // this worker's, one JSON text per line
  uint64_t bytes_ = 0, dirty_bytes_ = 0;          // this worker's, estimated
  double started_at_ = 0, files_written_at_ = 0;  // on this worker
  std::string model_sha256_, manifest_sha256_;
  std::optional<Error> error_;
  bool failed_here_ = false;  // the error occurred on this worker
  std::atomic<bool> cancel_{false};
  BackgroundTask task_;  // last, so that it ends before the members it uses
};

}  // namespace renzan
