#include "renzan/saving/resume.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/function_ref.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/comm/outcome.h"
#include "renzan/config/config_difference.h"
#include "renzan/nn/isa.h"
#include "renzan/optim/finite.h"
#include "renzan/saving/largest_first.h"
#include "renzan/saving/snapshot.h"

namespace renzan {
namespace {

// Prefix of the keys in a manifest's `run` that identify datasets, whose content determines the
// bits.
constexpr const char* kDatasetPrefix = "dataset.";
constexpr const char* kIsaKey = "isa";

[[noreturn]] void FailNoneIsValid(const std::string& where) {
  Fail(ErrorCode::kData,
       "no checkpoint in {} is valid: restore one, or start a new run with another --run-dir",
       where);
}

// An unreadable checkpoint need not be corrupt. Falling back to an older one would lose steps
// because of a possibly transient error, so the user decides.
[[noreturn]] void FailCannotRead(ErrorCode code, const std::string& path, const std::string& why) {
  Fail(code,
       "cannot resume from {}: {}; it may be valid, so try again once it can be read, or move it "
       "away to resume from an older checkpoint",
       path, why);
}

// Older versions saved checkpoints without this check.
void CheckFinite(const std::string& path, const std::string& what, bool finite) {
  if (!finite) Fail(ErrorCode::kData, "{}: {} holds NaN or infinite values", path, what);
}

}  // namespace

void LoadDense(CheckpointReader& reader, bool with_optimizer, ModelState* model) {
  for (const Parameter& parameter : model->model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    reader.Read(parameter.name, parameter.shape, model->parameters().span().subspan(offset, size));
    if (!with_optimizer) continue;
    for (DenseOptimizer::State& state : model->dense_optimizer().states())
      reader.Read(parameter.name + "/" + state.name, parameter.shape,
                  state.values.span().subspan(offset, size));
  }
}

namespace {

enum class Values { kAny, kFinite };

// Reads a tensor [rows, width] piece by piece, and calls set(first row, values).
void LoadRows(CheckpointReader& reader, const std::string& key, int64_t rows, int64_t width,
              Values allowed, FunctionRef<void(int64_t, std::span<const float>)> set) {
  const int64_t rows_at_once = std::max<int64_t>(1, (1 << 16) / width);
  std::vector<float> piece(static_cast<size_t>(rows_at_once * width));
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t n = std::min(rows_at_once, rows - first);
    const auto values = std::span(piece).first(static_cast<size_t>(n * width));
    reader.Read(key, first * width, values);
    if (allowed == Values::kFinite) CheckFinite(reader.dir(), key, AllFinite(values));
    set(first, values);
  }
}

void LoadWeights(CheckpointReader& reader, const EmbeddingShard::Block& block, Values allowed,
                 EmbeddingShard* shard) {
  const std::string key = KeyOf(*shard, block).Key() + ".weight";
  reader.Expect(key, {block.num_rows, shard->dim()});
  LoadRows(reader, key, block.num_rows, shard->dim(), allowed,
           [&](int64_t first, std::span<const float> rows) {
             shard->store.SetWeights(block.first_row + first, rows);
           });
}

void LoadState(CheckpointReader& reader, const ShardedEmbeddings& embeddings,
               const EmbeddingShard::Block& block, EmbeddingShard* shard) {
  if (shard->store.layout().state_width == 0) return;
  const std::string key =
      fmt::format("{}.weight/{}", KeyOf(*shard, block).Key(), embeddings.state_name());
  reader.Expect(key, StateShape(embeddings, *shard, block));
  LoadRows(reader, key, block.num_rows, shard->store.layout().state_width, Values::kFinite,
           [&](int64_t first, std::span<const float> state) {
             shard->store.SetState(block.first_row + first, state);
           });
}

// Of the virtual workers that are now assigned to this worker.
void LoadErrorFeedback(CheckpointReader& reader, ShardedEmbeddings* embeddings) {
  if (!embeddings->error_feedback().enabled()) return;
  const std::vector<TableSpec>& tables = embeddings->map().tables();
  const IndexRange own = embeddings->map().own();
  for (int v = own.begin; v < own.end; ++v)
    for (size_t t = 0; t < tables.size(); ++t) {
      ErrorFeedback::Slots& slots = embeddings->error_feedback().of(v, t);
      const ErrorFeedbackKeys key = KeysOfErrorFeedback(tables[t], v);
      reader.Expect(key.keys, slots.keys_shape());
      slots.keys = reader.ReadI64(key.keys);
      reader.Read(key.residuals, slots.residuals_shape(), slots.residuals.span());
      CheckFinite(reader.dir(), key.residuals, AllFinite(slots.residuals.span()));
    }
}

}  // namespace

void ForEachBlock(
    CheckpointReader& reader, ModelState* model,
    FunctionRef<void(CheckpointReader&, EmbeddingShard&, EmbeddingShard::Block&)> body) {
  // Readers are not thread-safe. A file is verified by the reader that uses it.
  ThreadPool& pool = model->pool();
  std::vector<std::unique_ptr<CheckpointReader>> others(static_cast<size_t>(pool.num_threads()));
  struct Place {
    EmbeddingShard* shard;
    EmbeddingShard::Block* block;
  };
  std::vector<Place> blocks;
  for (EmbeddingShard& shard : model->embeddings().shards())
    for (EmbeddingShard::Block& block : shard.blocks) blocks.push_back({&shard, &block});
  const std::vector<size_t> order = LargestFirst(blocks.size(), [&](size_t i) {
    return static_cast<size_t>(blocks[i].block->num_rows * blocks[i].shard->dim());
  });
  const auto visit = [&](int thread, const Place& place) {
    if (thread == 0) return body(reader, *place.shard, *place.block);
    std::unique_ptr<CheckpointReader>& own = others[static_cast<size_t>(thread)];
    if (own == nullptr) {
      own = std::make_unique<CheckpointReader>(reader.dir());
      if (own->manifest().manifest_sha256 != reader.manifest().manifest_sha256)
        Fail(ErrorCode::kTempFail, "{} was replaced while it was read: try again", reader.dir());
    }
    body(*own, *place.shard, *place.block);
  };
  std::vector<std::optional<Error>> errors(blocks.size());
  pool.ParallelTasks(blocks.size(), [&](int thread, size_t i) {
    try {
      visit(thread, blocks[order[i]]);
    } catch (const Error& error) {
      errors[order[i]] = error;
    }
  });
  // What could not be read may be valid, so it counts more than what is corrupt elsewhere.
  const std::optional<Error>* first = nullptr;
  for (const std::optional<Error>& error : errors)
    if (error && (first == nullptr ||
                  ((*first)->code() == ErrorCode::kData && error->code() != ErrorCode::kData)))
      first = &error;
  if (first != nullptr) throw **first;
}

namespace {

// The base of an increment must be in the same directory, so a model elsewhere starts no lineage.
std::optional<CheckpointLineage> LineageOf(const CheckpointReader& reader) {
  const CheckpointManifest& mine = reader.manifest();
  const std::string name = reader.dir().substr(reader.dir().rfind('/') + 1);
  if (!StepOfCheckpointName(name)) return std::nullopt;
  if (const CheckpointManifest* base = reader.base_manifest())
    return CheckpointLineage{.base = *mine.base,
                             .costs = {.has_base = true,
                                       .base_bytes = base->bytes(),
                                       .increments = 1,
                                       .increment_bytes = mine.bytes()}};
  return CheckpointLineage{.base = {name, mine.manifest_sha256},
                           .costs = {.has_base = true, .base_bytes = mine.bytes()}};
}

ResumePoint Load(const std::string& path, ModelState* model) {
  CheckpointReader reader(path);
  LoadDense(reader, true, model);
  CheckFinite(path, "the dense part", AllFinite(model->parameters().span()));
  for (DenseOptimizer::State& state : model->dense_optimizer().states())
    CheckFinite(path, state.name, AllFinite(state.values.span()));
  LoadErrorFeedback(reader, &model->embeddings());
  const ShardedEmbeddings& embeddings = model->embeddings();
  ForEachBlock(reader, model,
               [&](CheckpointReader& own, EmbeddingShard& shard, EmbeddingShard::Block& block) {
                 LoadWeights(own, block, Values::kFinite, &shard);
                 LoadState(own, embeddings, block, &shard);
                 // The next increment must hold every row that differs from the base.
                 block.dirty = RowSet(block.num_rows);
                 for (const int32_t row : own.ReplacedRows(KeyOf(shard, block).Key() + ".weight"))
                   block.dirty.Add(row);
               });
  ResumePoint point{.name = path.substr(path.rfind('/') + 1),
                    .step = reader.step(),
                    .unix_seconds = static_cast<double>(reader.manifest().unix_ms) / 1000,
                    .lineage = LineageOf(reader),
                    .run = reader.run(),
                    .progress = {}};
  for (const std::string& key : reader.keys())
    if (key.starts_with(kProgressPrefix)) point.progress[key] = reader.ReadI64(key);
  model->Changed();
  return point;
}

// On rank 0.
void MoveAsideWithWarning(const std::string& path) {
  try {
    LogWarning("moved corrupt {} to {}", path, MoveAside(path));
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
}

}  // namespace

std::vector<std::string> CheckpointsToResume(const std::string& dir, bool may_be_empty) {
  std::vector<std::string> paths;
  const std::vector<CheckpointEntry> entries = ListCheckpoints(dir);
  for (const CheckpointEntry& entry : entries) {
    if (entry.unreadable && paths.empty())
      FailCannotRead(*entry.unreadable, entry.path, entry.problem);
    if (entry.problem.empty()) {
      paths.push_back(entry.path);
    } else {
      LogWarning("skipping {}: {}", entry.path, entry.problem);
    }
  }
  if (paths.empty() && !entries.empty() && !may_be_empty) FailNoneIsValid(dir);
  return paths;
}

void CheckCanContinue(const std::string& path, const TrainConfig& config,
                      const std::map<std::string, std::string>& run) {
  const CheckpointManifest manifest = CheckpointManifest::Read(path);
  TrainConfig there;
  ReadConfigText(manifest.config, path + "/manifest.json", {},
                 [&](ConfigFields& fields) { there.Describe(fields); });
  const std::string difference = DifferenceThatChangesBits(there, config);
  if (!difference.empty())
    Fail(ErrorCode::kConfig,
         "{} is another run's checkpoint: {}; choose another --run-dir to start a new run", path,
         difference);
  for (const auto& [key, value] : run) {
    const auto recorded = manifest.run.find(key);
    if (!key.starts_with(kDatasetPrefix) || recorded == manifest.run.end() ||
        recorded->second == value)
      continue;
    Fail(ErrorCode::kConfig,
         "{} was trained on other data: {} is {} there and {} here; choose another --run-dir to "
         "start a new run",
         path, key, recorded->second, value);
  }
}

void CheckSameArithmetic(const std::string& path, const TrainConfig& config,
                         const std::map<std::string, std::string>& run) {
  const CheckpointManifest manifest = CheckpointManifest::Read(path);
  for (const auto& [key, value] : run) {
    const auto recorded = manifest.run.find(key);
    if (key.starts_with(kDatasetPrefix) || recorded == manifest.run.end() ||
        recorded->second == value)
      continue;
    if (key == kIsaKey && HasSameBits(recorded->second, value, PrecisionOf(config.numerics)))
      continue;
    if (key == kIsaKey && IsGpuClass(recorded->second) && IsGpuClass(value))
      Fail(ErrorCode::kConfig,
           "{} was computed on GPUs of class {}, and this one is of {}: its sums have other last "
           "bits; use GPUs of that class, device: cpu, or another --run-dir",
           path, recorded->second, value);
    LogWarning("{} is {} now and was {} when {} was written: the model may differ in its last bits",
               key, value, recorded->second, path);
  }
}

ResumePoint LoadNewest(const std::vector<std::string>& paths, ModelState& model, Communicator& comm,
                       const std::function<void(const std::string&)>& check_older) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    ResumePoint point;
    const std::optional<Error> mine = TryWithHeartbeats(comm, [&] {
      point = Load(*path, &model);
      if (check_older && path != paths.begin()) check_older(*path);
    });
    const std::vector<Outcome> outcomes = GatherOutcomes(comm, {.error = mine});
    bool valid = true;
    for (size_t rank = 0; rank < outcomes.size() && valid; ++rank) {
      const std::optional<Error>& error = outcomes[rank].error;
      if (!error) continue;
      valid = false;
      if (error->code() == ErrorCode::kIo)
        FailCannotRead(error->code(), *path, fmt::format("worker {}: {}", rank, error->what()));
      if (error->code() == ErrorCode::kNoInput)
        FailCannotRead(
            error->code(), *path,
            fmt::format(
                "worker {}: {} (all workers must share the directory and be able to read it)", rank,
                error->what()));
      if (error->code() != ErrorCode::kData)
        Fail(error->code(), "worker {}: {}", rank, error->what());
      if (comm.rank() == 0) LogWarning("skipping {}: {}", *path, error->what());
    }
    if (!valid) continue;
    if (comm.rank() == 0) std::for_each(paths.begin(), path, MoveAsideWithWarning);
    return point;
  }
  CHECK(!paths.empty());
  FailNoneIsValid(paths[0].substr(0, paths[0].rfind('/')));
}

void LoadModel(CheckpointReader& reader, ModelState* model) {
  LoadDense(reader, false, model);
  ForEachBlock(reader, model,
               [&](CheckpointReader& own, EmbeddingShard& shard, EmbeddingShard::Block& block) {
                 LoadWeights(own, block, Values::kAny, &shard);
               });
  model->Changed();
}

}  // namespace renzan
