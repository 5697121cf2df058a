#include "renzan/saving/checkpoint_in_flight.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/largest_first.h"
#include "renzan/base/log.h"
#include "renzan/base/sha256.h"
#include "renzan/saving/past_run.h"
#include "renzan/storage/copy_file.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

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

// This worker's staging directory, empty. Its name is always the same, so that a killed process's
// files are removed.
std::string EmptyStage(const std::string& parent, const std::string& dir,
                       const Communicator& comm) {
  constexpr size_t kDigits = 16;
  const std::string name = Sha256Hex(NormalizedPath(dir)).substr(0, kDigits) + ".";
  const std::string stage = fmt::format("{}/{}{}", parent, name, comm.rank());
  RemoveTree(stage);
  // Also the directories of a run with more workers, some of which may have been on this machine.
  for (const std::string& other : Storage::Of(parent).Names(parent))
    if (other.starts_with(name) && std::atoi(&other[name.size()]) >= comm.world_size())
      RemoveTree(parent + "/" + other);
  return stage;
}

}  // namespace

CheckpointInFlight::CheckpointInFlight(Options options, TrainedState& model, Communicator& comm)
    : options_(std::move(options)),
      model_(model),
      comm_(comm),
      bytes_per_second_(kAssumedBytesPerSecond) {
  if (!options_.stage.empty() && IsInStore(options_.dir))
    stage_ = EmptyStage(options_.stage, options_.dir, comm_);
}

CheckpointInFlight::~CheckpointInFlight() {
  cancel_ = true;
  if (stage_.empty()) return;
  constexpr double kForever = 3600;
  while (!task_.finished()) task_.WaitFor(kForever);
  RemoveTree(stage_);
}

bool CheckpointInFlight::IsStaged() const { return !stage_.empty() && IsInStore(request_.path); }

SnapshotOptions CheckpointInFlight::OptionsOf(CheckpointKind kind) const {
  const bool incremental = kind == CheckpointKind::kIncremental;
  return {.tables = {.incremental = incremental,
                     .quantize = incremental && options_.quantize != "none",
                     .sparse = options_.sparse},
          .with_dense = comm_.rank() == 0};
}

int64_t CheckpointInFlight::copied_bytes() {
  if (phase_ != Phase::kWriting) return 0;
  const int64_t copied = snapshot_->tables().copied_bytes();
  report_.copied_bytes = std::max(report_.copied_bytes, copied);
  return task_.finished() ? 0 : copied;
}

double CheckpointInFlight::SecondsLeft() const {
  if (!is_writing() || task_.finished()) return 0;
  const double elapsed = options_.clock->MonotonicSeconds() - started_at_;
  return std::max(0.0, static_cast<double>(bytes_) / bytes_per_second_ - elapsed);
}

void CheckpointInFlight::ThrowError() const {
  if (!failed_here_ && IsMachineFailure(error_->code()))
    throw Error(ErrorCode::kUnavailable, error_->what());
  throw *error_;
}

void CheckpointInFlight::Begin(Request request) {
  started_at_ = options_.clock->MonotonicSeconds();
  // A single worker's GPU may have run steps since the last sync: wait for them and check them,
  // too.
  ModelState& state = model_.Updated();
  pool_ = &state.pool();
  FailUnlessFinite(model_.finiteness());
  request_ = std::move(request);
  report_ = {.name = request_.path.substr(request_.path.rfind('/') + 1),
             .step = request_.manifest.step,
             .kind = request_.manifest.kind};
  location_.clear();
  files_.clear();
  model_sha256_.clear();
  manifest_sha256_.clear();
  error_.reset();
  failed_here_ = false;
  cancel_ = false;
  std::optional<Error> error;
  if (comm_.rank() == 0) {
    try {
      if (!IsInStore(request_.path)) ClearPath();
      writer_ = std::make_unique<CheckpointWriter>(request_.path);
      location_ = writer_->location();
    } catch (const Error& e) {
      error = e;
      failed_here_ = true;
    }
  }
  Outcome begun = BroadcastOutcome(comm_, {.error = error, .result = location_});
  if (begun.error) return End(begun.error);
  location_ = begun.result;

  const SnapshotOptions options = OptionsOf(report_.kind);
  const SnapshotBytes bytes = EstimateBytes(state, options);
  bytes_ = options.tables.incremental ? bytes.incremental : bytes.full;
  SnapshotOptions rows = OptionsOf(CheckpointKind::kIncremental);
  rows.with_dense = false;
  dirty_bytes_ = EstimateBytes(state, rows).incremental;
  Progress progress = request_.progress();
  progress_bytes_ = 0;
  for (const auto& [key, values] : progress)
    if (comm_.rank() == 0) progress_bytes_ += values.size() * sizeof(int64_t);
  snapshot_ = std::make_unique<ModelSnapshot>(state, options);
  phase_ = Phase::kWriting;
  StartTask([this, progress = std::move(progress)] { WriteFiles(progress); });
  report_.stall_seconds = options_.clock->MonotonicSeconds() - started_at_;
}

// While training continues, writing gets only the processor time that training leaves.
void CheckpointInFlight::StartTask(std::function<void()> task) {
  task_.Start(std::move(task), request_.training_waits ? BackgroundTask::Priority::kNormal
                                                       : BackgroundTask::Priority::kLow);
}

bool CheckpointInFlight::Advance(const ControlSyncResult& sync) {
  if (idle()) return false;
  const double start = options_.clock->MonotonicSeconds();
  if (phase_ == Phase::kWriting && sync.all_finished) {
    EndWriting();
    AddStall(options_.clock->MonotonicSeconds() - start);
  } else if (phase_ == Phase::kUploading && sync.all_finished) {
    EndUploading();
  } else if (phase_ == Phase::kCommitting && sync.rank0_finished) {
    EndCommitting();
  }
  return idle();
}

// On rank 0; in a store, where this takes a while, in the background. An existing checkpoint at
// the path could not be resumed from, or this run would have loaded it or a later one. A shorter
// run's model is kept until the new one replaces it (see past_run.h); in a store, until the new
// one's files are there.
void CheckpointInFlight::ClearPath() {
  const std::string& path = request_.path;
  if (!Storage::Of(path).HasTree(path, kCheckpointManifestName)) return;
  if (!request_.is_model) {
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
void CheckpointInFlight::WriteFiles(const Progress& progress) {
  std::string location = location_;
  if (IsStaged()) {
    CreateDirectories(stage_);
    location = stage_ + location.substr(location.rfind('/'));
  } else if (!IsInStore(location) && !FileExists(location))
    Fail(ErrorCode::kCantCreate,
         "{} does not exist on this worker: the checkpoint directory must be shared by all workers",
         location);
  const WriteOptions options{.hash_tensors = request_.is_model, .cancel = &cancel_};
  const auto write = [&](const TensorFile& file) {
    return WriteCheckpointFile(location, file, options).ToJson() + "\n";
  };
  const std::vector<TensorFile>& files = snapshot_->files();
  if (request_.is_model) {
    // Training is over, so its threads can write and hash the files. A model is a full snapshot.
    std::vector<std::string> written(files.size());
    const std::vector<size_t> order =
        LargestFirst(files.size(), [&](size_t i) { return files[i].bytes(); });
    pool_->ParallelTasks(files.size(),
                         [&](int, size_t i) { written[order[i]] = write(files[order[i]]); });
    for (const std::string& line : written) files_ += line;
  } else {
    for (const TensorFile& file : files) files_ += write(file);
  }
  if (comm_.rank() == 0 && !progress.empty()) {
    TensorFile file{.name = "progress.safetensors", .tensors = {}};
    for (const auto& [key, values] : progress)
      file.tensors.push_back(SourceOf(key, {static_cast<int64_t>(values.size())}, values));
    files_ += write(file);
  }
  files_written_at_ = options_.clock->MonotonicSeconds();
}

void CheckpointInFlight::EndWriting() {
  if (!IsStaged()) MeasureSpeed();
  const std::vector<Outcome> outcomes = GatherTasks(files_);
  if (EndIfAnyFailed(outcomes)) return;
  std::vector<CheckpointFile>& files = request_.manifest.files;
  for (const Outcome& outcome : outcomes) {
    for (CheckpointFile& file : ParseFiles(outcome.result)) {
      report_.bytes += file.bytes;
      files.push_back(std::move(file));
    }
  }
  if (request_.is_model) model_sha256_ = ModelSha256(files, report_.step);
  if (!IsStaged()) return StartCommitting();
  snapshot_->tables().Release();
  phase_ = Phase::kUploading;
  StartTask([this] { UploadFiles(); });
}

// In the background.
void CheckpointInFlight::UploadFiles() {
  const std::string to = location_.substr(0, location_.rfind('/') + 1);
  for (const CheckpointFile& file : ParseFiles(files_)) {
    CopyFile(stage_ + "/" + file.name, to + file.name, &cancel_);
    FileSystem::Get().Unlink(stage_ + "/" + file.name);
  }
  files_written_at_ = options_.clock->MonotonicSeconds();
}

void CheckpointInFlight::EndUploading() {
  MeasureSpeed();
  if (!EndIfAnyFailed(GatherTasks(""))) StartCommitting();
}

void CheckpointInFlight::MeasureSpeed() {
  if (task_.error() || bytes_ == 0) return;
  bytes_per_second_ = static_cast<double>(bytes_) / std::max(files_written_at_ - started_at_, 1e-3);
  speed_is_measured_ = true;
}

// How the workers' tasks have ended.
std::vector<Outcome> CheckpointInFlight::GatherTasks(const std::string& result) {
  failed_here_ = task_.error().has_value();
  return GatherOutcomes(comm_, {.error = task_.error(), .result = result});
}

bool CheckpointInFlight::EndIfAnyFailed(const std::vector<Outcome>& outcomes) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const std::optional<Error>& error = outcomes[rank].error;
    if (!error) continue;
    End(outcomes.size() == 1 ? *error : error->WithContext(fmt::format("worker {}", rank)));
    return true;
  }
  return false;
}

void CheckpointInFlight::StartCommitting() {
  phase_ = Phase::kCommitting;
  if (comm_.rank() == 0) task_.Start([this] { Commit(); });
}

// In the background.
void CheckpointInFlight::Commit() {
  CheckpointManifest manifest = std::move(request_.manifest);
  manifest.unix_ms = options_.clock->UnixMs();
  if (OptionsOf(manifest.kind).tables.quantize) manifest.quantization = options_.quantize;
  const auto check_lock = [&] {
    const bool is_locked = !request_.is_model || IsInStore(request_.path);
    if (is_locked && options_.lock != nullptr) options_.lock->Check();
  };
  check_lock();
  if (IsInStore(request_.path)) ClearPath();
  manifest_sha256_ = writer_->CheckAndCommit(std::move(manifest));
  // This process may have been suspended in between; then it must not remove anything.
  check_lock();
  try {
    request_.on_durable();
  } catch (const Error& error) {
    LogWarning("cannot remove old checkpoints: {}", error.what());
  }
}

void CheckpointInFlight::EndCommitting() {
  failed_here_ = comm_.rank() == 0 && task_.error();
  Outcome outcome = BroadcastOutcome(comm_, {.error = task_.error(), .result = manifest_sha256_});
  if (!outcome.error) manifest_sha256_ = outcome.result;
  taken_over_ = taken_over_ || (outcome.error && outcome.error->code() == ErrorCode::kCantCreate &&
                                IsInStore(request_.path));
  End(std::move(outcome.error));
}

void CheckpointInFlight::End(std::optional<Error> error) {
  report_.write_seconds = options_.clock->MonotonicSeconds() - started_at_;
  if (error) report_.error = error->what();
  if (error && snapshot_) snapshot_->tables().Abandon();
  if (error && IsStaged()) RemoveTree(stage_);
  snapshot_.reset();
  writer_.reset();
  error_ = std::move(error);
  phase_ = Phase::kIdle;
}

}  // namespace renzan
