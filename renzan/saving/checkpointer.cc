#include "renzan/saving/checkpointer.h"

#include <algorithm>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/gather.h"
#include "renzan/saving/past_run.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// Between two control syncs: much shorter than a stop takes, much longer than one exchange.
constexpr double kControlSyncSeconds = 0.1;
constexpr int64_t kMaxCallsBetweenSyncs = 1000;

}  // namespace

Checkpointer::Checkpointer(Options options, TrainedState& model, Communicator& comm, int64_t step,
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
      deadline_(options_.stop_notice_path, options_.grace_seconds, *options_.clock),
      synced_at_(last_begin_),
      in_flight_({.dir = options_.dir,
                  .stage = options_.config.stage,
                  .quantize = options_.config.quantize,
                  .sparse = options_.config.sparse,
                  .lock = options_.lock,
                  .clock = options_.clock},
                 model, comm) {}

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
  if (in_flight_.taken_over() || (best_failed_ && sync.stops == 0)) in_flight_.ThrowError();
  if (sync.stops > 0) {
    Stop(done, sync.stops);
    return true;
  }
  wanted_ = wanted_ || by_steps || sync.any_checkpoint || sync.checkpoint_due;
  if (!wanted_ || !in_flight_.idle()) return false;
  wanted_ = false;
  options_.requests->checkpoint = false;
  last_begin_ = options_.clock->MonotonicSeconds();
  if (done != saved_step_) BeginCheckpoint(done);
  return false;
}

void Checkpointer::KeepBest(int64_t step) {
  Finish();
  best_step_ = step;
  // Without a lineage the model was loaded from a shorter run's model, not from a checkpoint.
  if (step == saved_step_ && lineage_) return;
  BeginCheckpoint(step);
  if (best_failed_) in_flight_.ThrowError();
}

void Checkpointer::Finish() {
  WaitUntilIdle();
  if (in_flight_.taken_over() || best_failed_) in_flight_.ThrowError();
}

std::string Checkpointer::SaveModel(const std::string& path, int64_t step, ModelNotes notes) {
  Finish();
  CheckFinite(comm_, model_.finiteness());
  std::map<std::string, std::string> run = options_.run;
  run.merge(notes.run);
  Begin(
      {.path = path,
       .manifest =
           CheckpointManifest{.step = step, .run = std::move(run), .config = options_.config_yaml},
       .is_model = true,
       .training_waits = true,
       .progress = [&notes] { return std::move(notes.progress); },
       .on_durable =
           [path] {
             if (!IsInStore(path)) RemoveTree(PreviousModel(path));
           }});
  WaitUntilIdle();
  if (in_flight_.error()) in_flight_.ThrowError();
  return in_flight_.model_sha256();
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
              .checkpoint_due = in_flight_.idle() && every > 0 && now - last_begin_ >= every,
              .task_finished = in_flight_.task_finished(),
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
  if (in_flight_.Advance(sync)) Conclude();
}

bool Checkpointer::CopiesAreFull() {
  return in_flight_.copied_bytes() > options_.most_copied_bytes / (waiting_for_copies_ ? 2 : 1);
}

// Writing files frees copies. Workers go on exchanging meanwhile, or they would look dead.
ControlSyncResult Checkpointer::WaitForCopies(ControlSyncResult sync) {
  const double start = options_.clock->MonotonicSeconds();
  waiting_for_copies_ = true;
  while (sync.any_copies_full && sync.stops == 0) {
    in_flight_.WaitForTask(kControlSyncSeconds / 2);
    sync = SyncControl();
  }
  waiting_for_copies_ = false;
  in_flight_.AddStall(options_.clock->MonotonicSeconds() - start);
  return sync;
}

void Checkpointer::WaitUntilIdle() {
  while (!in_flight_.idle()) {
    in_flight_.WaitForTask(kControlSyncSeconds / 2);
    const ControlSyncResult sync = SyncControl();
    Advance(sync);
    if (stopping_ && sync.stops > stops_seen_) StopSooner(sync.stops);
  }
}

void Checkpointer::Stop(int64_t done, int64_t stops) {
  stopping_ = true;
  stops_seen_ = stops;
  if (comm_.rank() == 0) deadline_.Begin();
  const bool is_saved = in_flight_.idle() && done == saved_step_;
  if (options_.observer) options_.observer->OnStopping(done, !is_saved && !best_failed_);
  in_flight_.HurryUp();
  CancelIfTooSlow();
  WaitUntilIdle();
  // If the best model's checkpoint failed, a new one would record a best step that does not exist.
  if (done == saved_step_ || best_failed_) return;
  do {
    BeginCheckpoint(done);
    WaitUntilIdle();
  } while (in_flight_.cancelled() && done != saved_step_);
  if (in_flight_.taken_over()) in_flight_.ThrowError();
}

// Another request to stop: its deadline may be earlier.
void Checkpointer::StopSooner(int64_t stops) {
  stops_seen_ = stops;
  if (comm_.rank() == 0) deadline_.Update();
  CancelIfTooSlow();
}

void Checkpointer::CancelIfTooSlow() {
  if (!in_flight_.is_writing() || in_flight_.cancelled() || !IsTooSlow()) return;
  if (comm_.rank() == 0)
    LogInfo("{} would not be complete in {:.0f} s: an increment is written instead",
            in_flight_.report().name, std::max(0.0, deadline_.SecondsLeft()));
  in_flight_.Cancel();
}

std::vector<Checkpointer::Plan> Checkpointer::GatherPlans() const {
  Plan mine{
      .bytes = EstimateBytes(model_.Updated(), in_flight_.OptionsOf(CheckpointKind::kIncremental)),
      .in_flight_seconds = in_flight_.SecondsLeft()};
  // An increment instead of the full checkpoint in flight also holds the rows dirty before that.
  if (in_flight_.is_writing() && in_flight_.report().kind == CheckpointKind::kFull)
    mine.bytes.incremental =
        std::min(mine.bytes.incremental + in_flight_.dirty_bytes(), mine.bytes.full);
  mine.bytes.full += in_flight_.progress_bytes();
  mine.bytes.incremental += in_flight_.progress_bytes();
  mine.full_seconds = static_cast<double>(mine.bytes.full) / in_flight_.bytes_per_second();
  mine.incremental_seconds =
      static_cast<double>(mine.bytes.incremental) / in_flight_.bytes_per_second();
  mine.seconds_left = deadline_.SecondsLeft();
  // Nobody else removes it from a store, and asking would make training wait.
  mine.has_base =
      lineage_ &&
      (IsInStore(options_.dir) ||
       FileExists(fmt::format("{}/{}/manifest.json", options_.dir, lineage_->base.name)));
  return AllGatherValues(comm_, mine);
}

CheckpointKind Checkpointer::ChooseKind() const {
  if (!options_.config.incremental || !lineage_) return CheckpointKind::kFull;
  const std::vector<Plan> plans = GatherPlans();
  if (!plans[0].has_base) return CheckpointKind::kFull;
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
  if (stopping_ && comm_.rank() == 0 && std::isfinite(seconds_left)) {
    const bool incremental = kind == CheckpointKind::kIncremental;
    LogInfo("{:.0f} s are left: {} is written next, which takes {:.1f} s{}{}",
            std::max(0.0, seconds_left), incremental ? "an increment" : "a full checkpoint",
            incremental ? incremental_seconds : full_seconds,
            in_flight_.speed_is_measured()
                ? fmt::format(" at the {:.0f} MB/s of the last checkpoint",
                              in_flight_.bytes_per_second() / 1e6)
                : " at an assumed 100 MB/s",
            incremental ? fmt::format("; a full one would take {:.1f} s", full_seconds) : "");
  }
  return kind;
}

// Whether a full checkpoint in flight cannot finish before the deadline, in favor of a faster
// incremental one on the old base.
bool Checkpointer::IsTooSlow() const {
  if (!options_.config.incremental || !lineage_ ||
      in_flight_.report().kind != CheckpointKind::kFull || in_flight_.report().step == best_step_)
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

void Checkpointer::BeginCheckpoint(int64_t step) {
  const CheckpointKind kind = ChooseKind();
  CheckpointManifest manifest = {
      .kind = kind, .step = step, .run = options_.run, .config = options_.config_yaml};
  if (kind == CheckpointKind::kIncremental) manifest.base = lineage_->base;
  Begin({.path = options_.dir + "/" + CheckpointName(step),
         .manifest = std::move(manifest),
         .training_waits = stopping_,
         .progress = progress_,
         .on_durable = [this, step] { RemoveOld(step); }});
}

void Checkpointer::Begin(CheckpointInFlight::Request request) {
  in_flight_.Begin(std::move(request));
  if (in_flight_.idle()) Conclude();
}

// In the background, on worker 0.
void Checkpointer::RemoveOld(int64_t step) {
  RemoveOldCheckpoints(options_.dir, options_.config.keep,
                       best_step_ < 0 ? "" : CheckpointName(best_step_), step);
  if (std::exchange(has_failed_, false) && IsInStore(options_.dir))
    for (const std::string& path : MarkLeftoversForDeletion(options_.dir)) RemoveTree(path);
}

void Checkpointer::Conclude() {
  const CheckpointReport& report = in_flight_.report();
  has_failed_ = has_failed_ || in_flight_.error();
  if (in_flight_.is_model()) return;
  if (in_flight_.error()) {
    best_failed_ = best_failed_ || report.step == best_step_;
  } else {
    saved_step_ = report.step;
    if (report.kind == CheckpointKind::kFull) {
      lineage_ = {.base = {report.name, in_flight_.manifest_sha256()},
                  .costs = {.has_base = true, .base_bytes = report.bytes}};
    } else {
      lineage_->costs.increments += 1;
      lineage_->costs.increment_bytes += report.bytes;
    }
  }
  if (options_.observer) options_.observer->OnCheckpoint(report);
}

}  // namespace renzan
