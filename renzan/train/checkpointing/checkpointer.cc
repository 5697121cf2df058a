#include "renzan/train/checkpointing/checkpointer.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/log.h"
#include "renzan/base/sha256.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/storage/copy_file.h"
#include "renzan/storage/storage.h"
#include "renzan/train/checkpointing/largest_first.h"
#include "renzan/train/checkpointing/past_run.h"
#include "renzan/train/gather.h"
#include "renzan/train/outcome.h"

namespace renzan {
namespace {

// Between two control syncs: much shorter than a stop takes, much longer than one exchange.
constexpr double kControlSyncSeconds = 0.1;
constexpr int64_t kMaxCallsBetweenSyncs = 1000;
// Used until the first write has been measured: a slow network disk.
constexpr double kAssumedBytesPerSecond = 100e6;

std::vector<CheckpointFile> ParseFiles(const std::string& lines) {
  std::vector<CheckpointFile> files;
  for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = lines.find('\n', begin);
    files.push_back(CheckpointFile::FromJson(std::string_view(lines).substr(begin, end - begin)));
  }
  return files;
}

}  // namespace

Checkpointer::Checkpointer(Options options, HybridModel& model, Communicator& comm, int64_t step,
                           int64_t last_step, std::optional<CheckpointLineage> lineage,
                           Progress progress)
    : options_(std::move(options)),
      model_(model),
      comm_(comm),
      progress_(std::move(progress)),
      lineage_(std::move(lineage)),
      last_step_(last_step),
      saved_step_(step),
      best_step_(options_.best_step),
      last_begin_(options_.clock->MonotonicSeconds()),
      bytes_per_second_(kAssumedBytesPerSecond),
      deadline_(options_.stop_notice_path, options_.grace_seconds, *options_.clock),
      synced_at_(last_begin_) {
  if (options_.config.stage.empty() || !IsInStore(options_.dir)) return;
  // Always the same, so that what a killed process has left there is removed.
  constexpr size_t kDigits = 16;
  const std::string name = Sha256Hex(NormalizedPath(options_.dir)).substr(0, kDigits) + ".";
  stage_ = fmt::format("{}/{}{}", options_.config.stage, name, comm_.rank());
  RemoveTree(stage_);
  // Those of more workers, some of which may have been on this machine.
  for (const std::string& other : Storage::Of(options_.config.stage).Names(options_.config.stage))
    if (other.starts_with(name) && std::atoi(&other[name.size()]) >= comm_.world_size())
      RemoveTree(options_.config.stage + "/" + other);
}

Checkpointer::~Checkpointer() {
  cancel_ = true;
  if (stage_.empty()) return;
  while (!task_.finished()) task_.WaitFor(kControlSyncSeconds);
  RemoveTree(stage_);
}

bool Checkpointer::IsStaged() const { return !stage_.empty() && IsInStore(flight_.path); }

bool Checkpointer::ShouldStop(int64_t done) {
  const int64_t every = options_.config.every_steps;
  const bool by_steps = every > 0 && done % every == 0 && done != last_step_ &&
                        done != saved_step_ && done != every_steps_at_;
  if (by_steps) every_steps_at_ = done;
  // Calls between steps come at a different rate, so the old calls_to_next_ does not apply.
  if (std::exchange(between_steps_, done == last_done_) != (done == last_done_)) calls_to_next_ = 1;
  last_done_ = done;
  if (++calls_since_sync_ < calls_to_next_ && !by_steps) return false;
  ControlSyncResult sync = SyncControl();
  if (sync.any_copies_full) sync = WaitForCopies(sync);
  Advance(sync);
  if (!sync.finiteness.ok()) {
    WaitUntilIdle();  // the checkpoint in flight is of an earlier, finite step
    FailUnlessFinite(sync.finiteness);
  }
  if (taken_over_ || (best_failed_ && sync.stops == 0)) ThrowErrorInFlight();
  if (sync.stops > 0) {
    Stop(done, sync.stops);
    return true;
  }
  wanted_ = wanted_ || by_steps || sync.any_checkpoint || sync.checkpoint_due;
  if (!wanted_ || phase_ != Phase::kIdle) return false;
  wanted_ = false;
  options_.requests->checkpoint = false;
  last_begin_ = options_.clock->MonotonicSeconds();
  if (done != saved_step_)
    Begin(options_.dir + "/" + CheckpointName(done), done, ChooseIncremental(), false);
  return false;
}

void Checkpointer::KeepBest(int64_t step) {
  Finish();
  best_step_ = step;
  // Without a lineage the model was loaded from a shorter run's model, not from a checkpoint.
  if (step == saved_step_ && lineage_) return;
  Begin(options_.dir + "/" + CheckpointName(step), step, ChooseIncremental(), false);
  if (best_failed_) ThrowErrorInFlight();
}

void Checkpointer::Finish() {
  WaitUntilIdle();
  if (taken_over_ || best_failed_) ThrowErrorInFlight();
}

std::string Checkpointer::SaveModel(const std::string& path, int64_t step, ModelNotes notes) {
  Finish();
  CheckFinite(comm_, model_.finiteness());
  Begin(path, step, false, true, std::move(notes));
  WaitUntilIdle();
  if (flight_.error) ThrowErrorInFlight();
  return flight_.model_sha256;
}

// Other ranks throw kUnavailable, so that a launcher counts only the worker that failed.
void Checkpointer::ThrowErrorInFlight() const {
  if (!flight_.failed_here) throw Error(ErrorCode::kUnavailable, flight_.error->what());
  throw *flight_.error;
}

ControlSyncResult Checkpointer::SyncControl() {
  const double now = options_.clock->MonotonicSeconds();
  const double seconds_per_call =
      std::max(now - synced_at_, 1e-9) / static_cast<double>(calls_since_sync_ + 1);
  calls_since_sync_ = 0;
  synced_at_ = now;
  const double every = options_.config.every_seconds();
  const ControlSyncResult sync = ControlSync(
      comm_, {.stops = options_.requests->stops.load(),
              .checkpoint = options_.requests->checkpoint.load(),
              .checkpoint_due = phase_ == Phase::kIdle && every > 0 && now - last_begin_ >= every,
              .task_finished = task_.finished(),
              .copies_full = CopiesAreFull(),
              .calls_to_next = static_cast<int64_t>(kControlSyncSeconds / seconds_per_call),
              .finiteness = model_.finiteness()});
  // A single worker syncs at every call, which costs nothing. At most doubling the interval guards
  // against first calls that are much faster than later steps.
  const int64_t most = std::min(2 * calls_to_next_, kMaxCallsBetweenSyncs);
  calls_to_next_ = comm_.world_size() == 1 ? 1 : std::clamp<int64_t>(sync.calls_to_next, 1, most);
  return sync;
}

void Checkpointer::Advance(const ControlSyncResult& sync) {
  const double start = options_.clock->MonotonicSeconds();
  const auto stalled = [&] { return options_.clock->MonotonicSeconds() - start; };
  if (phase_ == Phase::kWriting && sync.all_finished) {
    EndWriting();
    flight_.report.stall_seconds += stalled();
  } else if (phase_ == Phase::kUploading && sync.all_finished) {
    EndUploading();
  } else if (phase_ == Phase::kCommitting && sync.rank0_finished) {
    EndCommitting();
  }
}

bool Checkpointer::CopiesAreFull() {
  if (phase_ != Phase::kWriting) return false;
  const int64_t copied = flight_.snapshot->copied_bytes();
  flight_.report.copied_bytes = std::max(flight_.report.copied_bytes, copied);
  return !task_.finished() && copied > options_.most_copied_bytes / (waiting_for_copies_ ? 2 : 1);
}

// Copies become fewer as files are written. Workers exchange meanwhile, or they would look dead.
ControlSyncResult Checkpointer::WaitForCopies(ControlSyncResult sync) {
  const double start = options_.clock->MonotonicSeconds();
  waiting_for_copies_ = true;
  while (sync.any_copies_full && sync.stops == 0) {
    task_.WaitFor(kControlSyncSeconds / 2);
    sync = SyncControl();
  }
  waiting_for_copies_ = false;
  flight_.report.stall_seconds += options_.clock->MonotonicSeconds() - start;
  return sync;
}

void Checkpointer::WaitUntilIdle() {
  while (phase_ != Phase::kIdle) {
    task_.WaitFor(kControlSyncSeconds / 2);
    const ControlSyncResult sync = SyncControl();
    Advance(sync);
    if (stopping_ && sync.stops > stops_seen_) StopSooner(sync.stops);
  }
}

void Checkpointer::Stop(int64_t done, int64_t stops) {
  stopping_ = true;
  stops_seen_ = stops;
  if (comm_.rank() == 0) deadline_.Begin();
  if (options_.observer) options_.observer->OnStopping(done);
  AbandonIfTooSlow();
  WaitUntilIdle();
  // If the best model's checkpoint failed, a new one would record a best step that does not exist.
  if (done == saved_step_ || best_failed_) return;
  do {
    Begin(options_.dir + "/" + CheckpointName(done), done, ChooseIncremental(), false);
    WaitUntilIdle();
  } while (flight_.abandoned && done != saved_step_);
  if (taken_over_) ThrowErrorInFlight();
}

// Another request to stop: its deadline may be earlier.
void Checkpointer::StopSooner(int64_t stops) {
  stops_seen_ = stops;
  if (comm_.rank() == 0) deadline_.Update();
  AbandonIfTooSlow();
}

void Checkpointer::AbandonIfTooSlow() {
  if (!IsWriting() || flight_.abandoned) return;
  flight_.abandoned = ShouldAbandonInFlight();
  if (flight_.abandoned && comm_.rank() == 0)
    LogInfo("{} would not be complete in {:.0f} s: an increment is written instead",
            flight_.report.name, std::max(0.0, deadline_.SecondsLeft()));
  cancel_ = flight_.abandoned;
}

std::vector<Checkpointer::Plan> Checkpointer::GatherPlans() const {
  const double now = options_.clock->MonotonicSeconds();
  Plan mine{.bytes = EstimateBytes(model_, OptionsFor(true))};
  // An increment instead of the full checkpoint in flight also holds the rows dirty before that.
  if (IsWriting() && flight_.report.kind == CheckpointKind::kFull)
    mine.bytes.incremental =
        std::min(mine.bytes.incremental + flight_.dirty_bytes, mine.bytes.full);
  mine.bytes.full += progress_bytes_;
  mine.bytes.incremental += progress_bytes_;
  mine.full_seconds = static_cast<double>(mine.bytes.full) / bytes_per_second_;
  mine.incremental_seconds = static_cast<double>(mine.bytes.incremental) / bytes_per_second_;
  if (IsWriting() && !task_.finished())
    mine.in_flight_seconds = std::max(
        0.0, static_cast<double>(flight_.bytes) / bytes_per_second_ - (now - flight_.started_at));
  mine.seconds_left = deadline_.SecondsLeft();
  // In a store nobody else removes it, and asking would make training wait.
  mine.has_base =
      lineage_ &&
      (IsInStore(options_.dir) ||
       FileExists(fmt::format("{}/{}/manifest.json", options_.dir, lineage_->base.name)));
  return AllGatherValues(comm_, mine);
}

bool Checkpointer::ChooseIncremental() const {
  if (!options_.config.incremental || !lineage_) return false;
  const std::vector<Plan> plans = GatherPlans();
  if (!plans[0].has_base) return false;
  SnapshotBytes total;
  double full_seconds = 0, incremental_seconds = 0;
  for (const Plan& plan : plans) {
    total.full += plan.bytes.full;
    total.incremental += plan.bytes.incremental;
    full_seconds = std::max(full_seconds, plan.full_seconds);
    incremental_seconds = std::max(incremental_seconds, plan.incremental_seconds);
  }
  CheckpointCosts costs = lineage_->costs;
  costs.full_bytes = total.full;
  costs.incremental_bytes = total.incremental;
  CheckpointKind kind = NextKind(costs);
  const double seconds_left = plans[0].seconds_left;
  if (stopping_) kind = KindForDeadline(kind, full_seconds, incremental_seconds, seconds_left);
  const bool incremental = kind == CheckpointKind::kIncremental;
  if (stopping_ && comm_.rank() == 0 && std::isfinite(seconds_left))
    LogInfo("{:.0f} s are left: {} is written next, which takes {:.1f} s{}; a full one {:.1f} s",
            std::max(0.0, seconds_left), incremental ? "an increment" : "a full checkpoint",
            incremental ? incremental_seconds : full_seconds,
            speed_is_measured_
                ? fmt::format(" at the {:.0f} MB/s of the last checkpoint", bytes_per_second_ / 1e6)
                : " at 100 MB/s, which is assumed",
            full_seconds);
  return incremental;
}

// Whether to abandon a full checkpoint that cannot finish before the deadline, in favor of a faster
// incremental one on the old base.
bool Checkpointer::ShouldAbandonInFlight() const {
  if (!options_.config.incremental || !lineage_ || flight_.report.kind != CheckpointKind::kFull ||
      flight_.report.step == best_step_)
    return false;
  const std::vector<Plan> plans = GatherPlans();
  double seconds = 0, incremental_seconds = 0;
  for (const Plan& plan : plans) {
    seconds = std::max(seconds, plan.in_flight_seconds);
    incremental_seconds = std::max(incremental_seconds, plan.incremental_seconds);
  }
  return plans[0].has_base && KindForDeadline(CheckpointKind::kFull, seconds, incremental_seconds,
                                              plans[0].seconds_left) != CheckpointKind::kFull;
}

SnapshotOptions Checkpointer::OptionsFor(bool incremental) const {
  return {.incremental = incremental,
          .quantize = incremental && options_.config.quantize != "none",
          .with_dense = comm_.rank() == 0};
}

void Checkpointer::Begin(const std::string& path, int64_t step, bool incremental, bool is_model,
                         ModelNotes notes) {
  const double started_at = options_.clock->MonotonicSeconds();
  // Of a single worker, whose GPU may have computed it since the last sync.
  model_.FinishStep();
  FailUnlessFinite(model_.finiteness());
  flight_ = {};
  flight_.path = path;
  flight_.is_model = is_model;
  flight_.notes = std::move(notes);
  flight_.started_at = started_at;
  flight_.report = {.name = path.substr(path.rfind('/') + 1),
                    .step = step,
                    .kind = incremental ? CheckpointKind::kIncremental : CheckpointKind::kFull};
  std::optional<Error> error;
  if (comm_.rank() == 0) {
    try {
      if (!IsInStore(path)) ClearPath(path, is_model);
      flight_.writer = std::make_unique<CheckpointWriter>(path);
      flight_.location = flight_.writer->location();
    } catch (const Error& e) {
      error = e;
      flight_.failed_here = true;
    }
  }
  Outcome begun = BroadcastOutcome(comm_, {.error = error, .result = flight_.location});
  if (begun.error) return Conclude(begun.error);
  flight_.location = begun.result;

  const SnapshotOptions options = OptionsFor(incremental);
  const SnapshotBytes bytes = EstimateBytes(model_, options);
  flight_.bytes = incremental ? bytes.incremental : bytes.full;
  SnapshotOptions rows = OptionsFor(true);
  rows.with_dense = false;
  flight_.dirty_bytes = EstimateBytes(model_, rows).incremental;
  std::map<std::string, std::vector<int64_t>> progress =
      is_model ? std::move(flight_.notes.progress) : progress_();
  progress_bytes_ = 0;
  for (const auto& [key, values] : progress)
    if (comm_.rank() == 0) progress_bytes_ += values.size() * sizeof(int64_t);
  flight_.snapshot = std::make_unique<ModelSnapshot>(model_, options);
  phase_ = Phase::kWriting;
  cancel_ = false;
  // While training continues, writing gets only the CPU time that training leaves.
  const auto priority =
      stopping_ || is_model ? BackgroundTask::Priority::kNormal : BackgroundTask::Priority::kLow;
  task_.Start([this, progress = std::move(progress)] { WriteFiles(progress); }, priority);
  flight_.report.stall_seconds = options_.clock->MonotonicSeconds() - started_at;
}

// On rank 0; in a store, where this takes a while, in the background. An existing checkpoint at
// `path` could not be resumed from, or this run would have loaded it or a later one. A shorter
// run's model is kept until the new one replaces it (see past_run.h); in a store, until the new
// one's files are there.
void Checkpointer::ClearPath(const std::string& path, bool is_model) {
  if (!Storage::Of(path).HasTree(path, kCheckpointManifestName)) return;
  if (!is_model) {
    // In a store, where it was not there when this run resumed.
    if (IsInStore(path) && DescribeCheckpoint(path).problem.empty())
      Fail(ErrorCode::kCantCreate,
           "{} exists: another run has written it meanwhile; only one at a time may", path);
    LogWarning("{} exists but was not resumed from: moved to {}", path, MoveAside(path));
  } else if (IsInStore(path)) {
    // The new one's files lie among its own.
    const CheckpointManifest old = CheckpointManifest::Read(path);
    Storage::Of(path).Remove(path + "/" + kCheckpointManifestName);
    for (const CheckpointFile& file : old.files) Storage::Of(path).Remove(path + "/" + file.name);
  } else if (FileSystem::Get().Rename(path, PreviousModel(path)) != 0) {
    FailErrno(errno, fmt::format("cannot rename {}", path));
  }
}

// In the background.
void Checkpointer::WriteFiles(const std::map<std::string, std::vector<int64_t>>& progress) {
  std::string location = flight_.location;
  if (IsStaged()) {
    CreateDirectories(stage_);
    location = stage_ + location.substr(location.rfind('/'));
  } else if (!IsInStore(location) && !FileExists(location))
    Fail(ErrorCode::kCantCreate,
         "{} does not exist on this worker: the checkpoint directory must be shared by all workers",
         location);
  const WriteOptions options{.hash_tensors = flight_.is_model, .cancel = &cancel_};
  const auto write = [&](const std::string& name, std::span<const TensorSource> tensors) {
    return WriteCheckpointFile(location, name, tensors, options).ToJson() + "\n";
  };
  const std::vector<ModelSnapshot::File>& files = flight_.snapshot->files();
  if (flight_.is_model) {
    // Training is over, so its threads can write and hash the files. A model is a full snapshot.
    std::vector<std::string> written(files.size());
    const std::vector<size_t> order =
        LargestFirst(files.size(), [&](size_t i) { return files[i].bytes(); });
    model_.pool().ParallelTasks(files.size(), [&](int, size_t i) {
      const ModelSnapshot::File& file = files[order[i]];
      written[order[i]] = write(file.name, file.tensors);
    });
    for (const std::string& line : written) flight_.files += line;
  } else {
    for (const ModelSnapshot::File& file : files) flight_.files += write(file.name, file.tensors);
  }
  if (comm_.rank() == 0 && !progress.empty()) {
    std::vector<TensorSource> tensors;
    for (const auto& [key, values] : progress)
      tensors.push_back(SourceOf(key, {static_cast<int64_t>(values.size())}, values));
    flight_.files += write("progress.safetensors", tensors);
  }
  flight_.files_written_at = options_.clock->MonotonicSeconds();
}

void Checkpointer::EndWriting() {
  flight_.failed_here = task_.error().has_value();
  if (!IsStaged()) MeasureSpeed();
  const std::vector<Outcome> outcomes =
      GatherOutcomes(comm_, {.error = task_.error(), .result = flight_.files});
  std::vector<CheckpointFile> files;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (const std::optional<Error>& error = outcomes[rank].error)
      return Conclude(outcomes.size() == 1 ? *error
                                           : error->WithContext(fmt::format("worker {}", rank)));
    for (CheckpointFile& file : ParseFiles(outcomes[rank].result)) {
      flight_.report.bytes += file.bytes;
      files.push_back(std::move(file));
    }
  }
  flight_.model_sha256 = flight_.is_model ? ModelSha256(files, flight_.report.step) : "";
  flight_.all_files = std::move(files);
  if (!IsStaged()) return StartCommitting();
  flight_.snapshot->Release();
  phase_ = Phase::kUploading;
  task_.Start([this] { UploadFiles(); },
              stopping_ ? BackgroundTask::Priority::kNormal : BackgroundTask::Priority::kLow);
}

void Checkpointer::MeasureSpeed() {
  if (task_.error() || flight_.bytes == 0) return;
  bytes_per_second_ = static_cast<double>(flight_.bytes) /
                      std::max(flight_.files_written_at - flight_.started_at, 1e-3);
  speed_is_measured_ = true;
}

// In the background.
void Checkpointer::UploadFiles() {
  const std::string to = flight_.location.substr(0, flight_.location.rfind('/') + 1);
  for (const CheckpointFile& file : ParseFiles(flight_.files)) {
    CopyFile(stage_ + "/" + file.name, to + file.name, &cancel_);
    FileSystem::Get().Unlink(stage_ + "/" + file.name);
  }
  flight_.files_written_at = options_.clock->MonotonicSeconds();
}

void Checkpointer::EndUploading() {
  flight_.failed_here = task_.error().has_value();
  MeasureSpeed();
  const std::vector<Outcome> outcomes = GatherOutcomes(comm_, {.error = task_.error()});
  for (size_t rank = 0; rank < outcomes.size(); ++rank)
    if (const std::optional<Error>& error = outcomes[rank].error)
      return Conclude(outcomes.size() == 1 ? *error
                                           : error->WithContext(fmt::format("worker {}", rank)));
  StartCommitting();
}

void Checkpointer::StartCommitting() {
  phase_ = Phase::kCommitting;
  if (comm_.rank() == 0) task_.Start([this] { Commit(std::move(flight_.all_files)); });
}

// In the background.
void Checkpointer::Commit(std::vector<CheckpointFile> files) {
  CheckpointManifest manifest;
  manifest.kind = flight_.report.kind;
  manifest.step = flight_.report.step;
  manifest.unix_ms = options_.clock->UnixMs();
  if (manifest.kind == CheckpointKind::kIncremental) {
    manifest.base = lineage_->base;
    if (options_.config.quantize != "none") manifest.quantization = options_.config.quantize;
  }
  manifest.run = options_.run;
  manifest.run.merge(flight_.notes.run);
  manifest.files = std::move(files);
  manifest.config = options_.config_yaml;
  const auto check_lock = [&] {
    const bool is_locked = !flight_.is_model || IsInStore(flight_.path);
    if (is_locked && options_.lock != nullptr) options_.lock->Check();
  };
  check_lock();
  if (IsInStore(flight_.path)) ClearPath(flight_.path, flight_.is_model);
  flight_.manifest_sha256 = flight_.writer->CheckAndCommit(std::move(manifest));
  // This process may have been suspended in between; then it must not remove anything.
  check_lock();
  try {
    if (flight_.is_model) {
      if (!IsInStore(flight_.path)) RemoveTree(PreviousModel(flight_.path));
    } else {
      RemoveOldCheckpoints(options_.dir, options_.config.keep,
                           best_step_ < 0 ? "" : CheckpointName(best_step_), flight_.report.step);
      if (std::exchange(has_failed_, false) && IsInStore(options_.dir))
        for (const std::string& path : MarkLeftoversForDeletion(options_.dir)) RemoveTree(path);
    }
  } catch (const Error& error) {
    LogWarning("cannot remove old checkpoints: {}", error.what());
  }
}

void Checkpointer::EndCommitting() {
  flight_.failed_here = comm_.rank() == 0 && task_.error();
  Outcome outcome =
      BroadcastOutcome(comm_, {.error = task_.error(), .result = flight_.manifest_sha256});
  if (!outcome.error) flight_.manifest_sha256 = outcome.result;
  taken_over_ = taken_over_ || (outcome.error && outcome.error->code() == ErrorCode::kCantCreate &&
                                IsInStore(flight_.path));
  Conclude(std::move(outcome.error));
}

void Checkpointer::Conclude(std::optional<Error> error) {
  CheckpointReport& report = flight_.report;
  report.write_seconds = options_.clock->MonotonicSeconds() - flight_.started_at;
  if (error && flight_.snapshot) flight_.snapshot->Abandon();
  if (error && IsStaged()) RemoveTree(stage_);
  flight_.snapshot.reset();
  flight_.writer.reset();
  phase_ = Phase::kIdle;
  if (error) {
    report.error = error->what();
    has_failed_ = true;
    best_failed_ = best_failed_ || (!flight_.is_model && report.step == best_step_);
  } else if (!flight_.is_model) {
    saved_step_ = report.step;
    if (report.kind == CheckpointKind::kFull) {
      lineage_ = {.base = {report.name, flight_.manifest_sha256},
                  .costs = {.has_base = true, .base_bytes = report.bytes}};
    } else {
      lineage_->costs.increments += 1;
      lineage_->costs.increment_bytes += report.bytes;
    }
  }
  flight_.error = std::move(error);
  if (options_.observer && !flight_.is_model) options_.observer->OnCheckpoint(report);
}

}  // namespace renzan
