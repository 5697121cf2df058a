#include "renzan/train/run.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "renzan/base/background_task.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/thread_pool.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/storage/storage.h"
#include "renzan/train/agreement.h"
#include "renzan/train/checkpointing/checkpointer.h"
#include "renzan/train/checkpointing/past_run.h"
#include "renzan/train/checkpointing/resume.h"
#include "renzan/train/device_options.h"
#include "renzan/train/gather.h"
#include "renzan/train/heartbeat.h"
#include "renzan/train/hybrid_model.h"
#include "renzan/train/loop.h"
#include "renzan/train/make_plan.h"
#include "renzan/train/memory_check.h"
#include "renzan/train/memory_estimate.h"
#include "renzan/train/observe/run_manifest.h"
#include "renzan/train/observe/status_file.h"
#include "renzan/train/profiler.h"
#include "renzan/train/run_observer.h"
#include "renzan/train/splits.h"

namespace renzan {
namespace {

constexpr const char* kModelName = "model";

// Rank 0 chooses and broadcasts.
RunDirectories ChooseDirectories(const TrainConfig& config, const RunOptions& options,
                                 Communicator& comm) {
  std::string run = config.run_dir;
  if (run.empty() && comm.rank() == 0) run = NewRunDirectory(options.name, *options.clock);
  RunDirectories directories{.run = BroadcastString(comm, run),
                             .checkpoints = BroadcastString(comm, config.checkpoint.dir)};
  if (directories.checkpoints.empty()) directories.checkpoints = directories.run + "/checkpoints";
  directories.model = directories.run + "/" + kModelName;
  return directories;
}

// Whether all workers see the run directory, which worker 0 has created and locked.
bool SharesRunDirectory(const std::string& run_dir, Communicator& comm) {
  if (comm.world_size() == 1) return true;
  const std::string path = run_dir + "/.shared";
  std::string mark = fmt::format("{} {}", HostName(), getpid());
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0) WriteFileAtomically(path, mark);
  });
  mark = BroadcastString(comm, mark);
  char missing = 0;
  RunWithHeartbeats(comm, [&] { missing = FileExists(path) && ReadFile(path) == mark ? 0 : 1; });
  const std::vector<char> everywhere = AllGatherValues(comm, missing);
  if (comm.rank() == 0) FileSystem::Get().Unlink(path);
  return std::all_of(everywhere.begin(), everywhere.end(), [](char each) { return each == 0; });
}

// What a checkpoint records of the run that wrote it, besides its configuration.
std::map<std::string, std::string> DescribeRun(const OpenedSplits& splits,
                                               const ProgramFacts& facts) {
  std::map<std::string, std::string> run = {{"build", facts.build},
                                            {"isa", facts.isa},
                                            {"dataset.train", splits.train.dataset->fingerprint()}};
  for (const auto& [name, version] : facts.libraries) run["library." + name] = version;
  return run;
}

// Rank 0 looks and broadcasts.
PastRun AgreeOnPastRun(const RunDirectories& directories, const TrainConfig& config,
                       const std::map<std::string, std::string>& run, int64_t steps,
                       bool must_resume, Communicator& comm) {
  PastRun past;
  std::string paths;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() != 0) return;
    past = FindPastRun(directories, config, run, steps);
    if (must_resume && past.checkpoints.empty() && past.model_sha256.empty())
      Fail(ErrorCode::kNoInput, "{} has no checkpoint to resume from", directories.checkpoints);
    for (const std::string& path : past.checkpoints) paths += path + "\n";
  });
  past.model_sha256 = BroadcastString(comm, past.model_sha256);
  past.model_step = AllGatherValues(comm, past.model_step)[0];
  paths = BroadcastString(comm, paths);
  past.checkpoints.clear();
  for (size_t begin = 0, end; begin < paths.size(); begin = end + 1) {
    end = paths.find('\n', begin);
    past.checkpoints.push_back(paths.substr(begin, end - begin));
  }
  return past;
}

// Identifies the metric and the rows of a record of evaluations.
std::string MeaningOfEvaluations(const TrainConfig& config, const OpenedSplits& splits) {
  if (!splits.eval) return "";
  return fmt::format("{} {} {} {}", config.training.early_stopping.metric,
                     splits.eval->dataset->fingerprint(), splits.eval->rows.begin,
                     splits.eval->rows.end);
}

std::string BestCheckpoint(const RunDirectories& directories, int64_t step) {
  return directories.checkpoints + "/" + CheckpointName(step);
}

// Without the checkpoint of its best model the record is useless, so it starts again.
void ResetEvaluationsIfBestIsMissing(const RunDirectories& directories, Communicator& comm,
                                     LoopState* state) {
  const int64_t best = state->evaluations.best_step();
  if (best < 0 || best == state->step) return;
  const std::string path = BestCheckpoint(directories, best);
  char missing = 0;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0)
      missing = Storage::Of(path).HasTree(path, kCheckpointManifestName) ? 0 : 1;
  });
  if (AllGatherValues(comm, missing)[0] == 0) return;
  if (comm.rank() == 0)
    LogWarning("{}, the best model so far, is missing: keeping the best model from here on", path);
  state->evaluations = state->evaluations.Emptied();
}

// Loads the best model unless it is the current one, which is at `step`. Returns its step.
int64_t LoadBest(const RunDirectories& directories, const EvaluationRecord& evaluations,
                 int64_t step, HybridModel& model, Communicator& comm) {
  const int64_t best = evaluations.best_step();
  if (best < 0 || best == step) return step;
  try {
    return LoadNewest({BestCheckpoint(directories, best)}, model, comm).step;
  } catch (const Error& error) {
    throw error.WithContext(
        fmt::format("cannot read the best model, of step {} (to continue without it, remove its "
                    "checkpoint and run the same command again)",
                    best));
  }
}

// For a run that was killed after saving its model but before recording that.
void RecordFinished(const std::string& run_dir, int64_t steps, const std::string& model_sha256,
                    const Clock& clock) {
  const std::string path = run_dir + "/manifest.json";
  if (!FileExists(path)) return;
  RunManifest manifest = ReadRunManifest(path);
  if (manifest.model_sha256 == model_sha256) return;
  manifest.model_sha256 = model_sha256;
  manifest.steps = steps;
  WriteRunManifest(path, manifest);
  WriteStatusFile(run_dir + "/status.json", {.state = "done",
                                             .step = steps,
                                             .steps = steps,
                                             .updated_unix_seconds = clock.UnixSeconds()});
}

}  // namespace

std::string NewRunDirectory(const std::string& name, const Clock& clock) {
  const std::string stem = fmt::format("runs/{}-{}", name, FormatUtc(clock.UnixSeconds()));
  std::string dir = stem;
  for (int i = 2; FileExists(dir); ++i) dir = fmt::format("{}.{}", stem, i);
  return dir;
}

RunResult RunTraining(const TrainConfig& config, const RunOptions& options, Communicator& comm) {
  const ProgramFacts facts = FactsOfWorker(options.build_id, config, comm.rank());
  CheckSameRun(comm, config, facts);
  ThreadPool pool(PoolThreads(config, comm.world_size(), options.threads));
  const OpenedSplits splits = OpenSplits(config.data, config.features, comm);
  const int64_t steps = NumSteps(config.training, splits.train);
  RunDirectories directories = ChooseDirectories(config, options, comm);
  DirectoryLocks locks;
  BackgroundTask cleanup;  // ends before the locks are released
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0)
      locks = LockDirectories(directories, options.attempt,
                              [&] { return options.requests->stops > 0; });
  });
  if (IsInStore(directories.checkpoints) && !SharesRunDirectory(directories.run, comm))
    directories.model = directories.checkpoints + "/" + kModelName;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() != 0) return;
    std::vector<std::string> leftovers = MarkLeftoversForDeletion(directories.checkpoints);
    if (IsInStore(directories.model))
      for (std::string& path : MarkLeftoversForDeletion(directories.checkpoints, kModelName))
        leftovers.push_back(std::move(path));
    cleanup.Start([leftovers = std::move(leftovers)] {
      for (const std::string& path : leftovers) RemoveTree(path);
    });
  });

  TrainConfig resolved = config;
  resolved.run_dir = directories.run;
  resolved.features = FeaturesOf(splits.train.dataset->schema());
  const std::string config_yaml =
      PrintConfig([&](ConfigFields& fields) { resolved.Describe(fields); });
  const std::map<std::string, std::string> run = DescribeRun(splits, facts);
  const PastRun past = AgreeOnPastRun(directories, resolved, run, steps, options.must_resume, comm);
  if (!past.model_sha256.empty()) {
    if (comm.rank() == 0) {
      RecordFinished(directories.run, past.model_step, past.model_sha256, *options.clock);
      LogInfo("{} is already trained to step {}: model sha256 {}",
              IsInStore(directories.model) ? directories.checkpoints : directories.run,
              past.model_step, past.model_sha256);
    }
    return {RunResult::End::kWasTrained, directories.run, past.model_sha256};
  }

  const DatasetSchema& schema = splits.train.dataset->schema();
  std::vector<double> pooling_factors;
  RunWithHeartbeats(comm, [&] { pooling_factors = EstimatePoolingFactors(splits.train); });
  const ShardingPlan plan = AgreeOnPlan(config, schema, pooling_factors, comm, options.threads,
                                        options.restarted || !past.checkpoints.empty());
  const std::vector<MemoryEstimate> memory = EstimateMemoryOfWorkers(
      config, schema, pooling_factors, plan, comm.world_size(), options.threads);
  if (comm.rank() == 0) LogInfo("memory of a worker: {}", Describe(MostOf(memory)));
  const MemoryEstimate& my_memory = memory[static_cast<size_t>(comm.rank())];
  int64_t room = my_memory.more_copies;
  if (config.check_memory) room = CheckMemory(my_memory, comm);
  std::optional<HybridModel> built;
  RunWithHeartbeats(comm, [&] {
    built.emplace(config, schema, pooling_factors, comm, pool,
                  past.checkpoints.empty() ? InitialValues::kDraw : InitialValues::kZero, &plan);
  });
  HybridModel& model = *built;
  LoopState state;
  state.window.resize(static_cast<size_t>(pool.num_threads()));
  state.evaluations = EvaluationRecord(MeaningOfEvaluations(config, splits));
  std::optional<ResumePoint> resumed;
  if (!past.checkpoints.empty()) {
    resumed = LoadNewest(past.checkpoints, model, comm);
    state.step = resumed->step;
    RestoreProgress(resumed->progress, comm.rank(), &state);
    if (config.training.keep_best) ResetEvaluationsIfBestIsMissing(directories, comm, &state);
  }
  CheckSameDenseParameters(comm, model);

  const std::vector<std::string> hosts = GatherStrings(comm, HostName());
  std::unique_ptr<RunObserver> observer;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() != 0) return;
    observer = std::make_unique<RunObserver>(RunObserver::Options{.run_dir = directories.run,
                                                                  .model = directories.model,
                                                                  .config_yaml = config_yaml,
                                                                  .config = &config,
                                                                  .splits = &splits,
                                                                  .facts = facts,
                                                                  .backend = comm.backend(),
                                                                  .hosts = hosts,
                                                                  .threads = options.threads,
                                                                  .terminal = options.terminal,
                                                                  .clock = options.clock,
                                                                  .resumed = resumed});
  });
  Checkpointer checkpointer(
      Checkpointer::Options{
          .dir = directories.checkpoints,
          .config = config.checkpoint,
          .config_yaml = config_yaml,
          .run = run,
          .best_step = config.training.keep_best ? state.evaluations.best_step() : -1,
          .stop_notice_path = options.stop_notice_path,
          .grace_seconds = options.grace_seconds,
          .most_copied_bytes = my_memory.few_copies + room,
          .lock = locks.checkpoints.get(),
          .requests = options.requests,
          .clock = options.clock,
          .observer = observer.get()},
      model, comm, state.step, steps, resumed ? resumed->lineage : std::nullopt,
      [&] { return SaveProgress(comm, state); });
  StepProfiler profiler(options.profile_steps, directories.run + "/profile.json", comm);
  const bool finished =
      Train(config, steps, splits.train, splits.eval, model, comm, *options.clock,
            {.observer = observer.get(),
             .should_stop = [&](int64_t done) { return checkpointer.ShouldStop(done); },
             .after_step = [&] { profiler.OnStep(); },
             .keep_best = [&](int64_t step) { checkpointer.KeepBest(step); }},
            &state);
  profiler.Finish();
  if (!finished) {
    if (observer) observer->OnStopped();
    return {RunResult::End::kStopped, directories.run, ""};
  }
  checkpointer.Finish();
  const int64_t model_step = config.training.keep_best
                                 ? LoadBest(directories, state.evaluations, state.step, model, comm)
                                 : state.step;
  const EvaluationRecord& evaluations = state.evaluations;
  const std::string sha256 = checkpointer.SaveModel(
      directories.model, model_step,
      {.progress = SaveEvaluations(model_step == state.step ? state.scheduled_evaluations
                                                            : evaluations.AtItsBest()),
       .run = DescribeEnd(config.training, steps, state.step < steps)});
  if (observer) observer->OnDone(state, model_step, sha256);
  return {RunResult::End::kTrained, directories.run, sha256};
}

}  // namespace renzan
