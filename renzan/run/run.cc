#include "renzan/run/run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "renzan/base/background_task.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/free_space.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/thread_pool.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/infer/rank_items.h"
#include "renzan/model/output_metric.h"
#include "renzan/model/reach.h"
#include "renzan/planning/device_options.h"
#include "renzan/planning/disk_use.h"
#include "renzan/planning/make_plan.h"
#include "renzan/planning/memory_check.h"
#include "renzan/planning/memory_estimate.h"
#include "renzan/run/agreement.h"
#include "renzan/run/best_model.h"
#include "renzan/run/count_ids.h"
#include "renzan/run/explain_divergence.h"
#include "renzan/run/groups.h"
#include "renzan/run/initialize.h"
#include "renzan/run/items_to_rank.h"
#include "renzan/run/loop.h"
#include "renzan/run/profiler.h"
#include "renzan/run/run_directories.h"
#include "renzan/run/run_observer.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/negatives.h"
#include "renzan/run_spec/parameter_groups.h"
#include "renzan/run_spec/schedule.h"
#include "renzan/saving/checkpointer.h"
#include "renzan/saving/past_run.h"
#include "renzan/saving/resume.h"
#include "renzan/step/make_step.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// What a checkpoint records of the run that wrote it, besides its configuration.
std::map<std::string, std::string> DescribeRun(const OpenedSplits& splits,
                                               const ProgramFacts& facts) {
  std::map<std::string, std::string> run = {{"build", facts.build},
                                            {"isa", facts.isa},
                                            {"dataset.train", splits.train.dataset->fingerprint()}};
  for (const auto& [name, version] : facts.libraries) run["library." + name] = version;
  return run;
}

// One run on one worker. The members are what each pass leaves for those after it, in that order.
class TrainingRun {
 public:
  TrainingRun(const TrainConfig& config, const RunOptions& options, Communicator& comm)
      : config_(config),
        options_(options),
        comm_(comm),
        facts_(FactsOfWorker(options.build_id, config, comm)) {}

  RunResult Execute() {
    OpenData();
    ClaimDirectories();
    FindPast();
    if (!past_.model_sha256.empty()) return WasTrained();
    Plan();
    Build();
    SetInitialState();
    CheckSameDenseParameters(comm_, *state_);
    Observe();
    if (!TrainSteps()) return Stopped();
    return SaveModel();
  }

 private:
  // The passes.
  void OpenData();
  void ReadItems();  // that evaluations rank, if they do
  void ClaimDirectories();
  void FindPast();
  void Plan();
  void Build();
  void SetInitialState();  // drawn, of another run's model, or of a checkpoint of this run
  void Resume();
  std::string HowToResume() const;
  void Observe();
  bool TrainSteps();  // false if it was stopped
  RunResult SaveModel();

  void AdviseOnDisk() const;
  Plateau UnseenPlateau() const;
  std::string MeaningOfEvaluations(const std::string& watched, const std::string& metric) const;
  bool ComparesWeighted(const std::string& metric) const;
  RunResult WasTrained();
  void CheckEvaluatedAlike() const;
  RunResult Stopped();
  void RemoveLeftovers();
  Checkpointer::Options CheckpointerOptions();

  TrainConfig config_;  // once the data are open, with the model's outputs
  const RunOptions& options_;
  Communicator& comm_;
  const ProgramFacts facts_;

  OpenedSplits splits_;
  std::optional<RowGroups> groups_;
  std::optional<ItemRanking> ranking_;
  int64_t steps_ = 0;   // of the whole run
  TrainConfig of_run_;  // with the schedule for that many steps

  bool initial_model_checked_ = false;
  RunDirectories directories_;
  DirectoryLocks locks_;
  BackgroundTask cleanup_;  // ends before the locks are released

  TrainConfig resolved_;                         // with the run's directory and the data's features
  std::string config_yaml_;                      // the same as text
  std::map<std::string, std::string> recorded_;  // what checkpoints record of this run
  PastRun past_;

  RunSpec spec_;
  ShardingPlan plan_;
  int64_t most_copied_bytes_ = 0;

  std::optional<ThreadPool> pool_;
  std::optional<ModelState> state_;
  std::unique_ptr<Step> step_;

  LoopState loop_;
  std::optional<ResumePoint> resumed_;
  std::unique_ptr<RunObserver> observer_;  // on rank 0
  std::optional<Checkpointer> checkpointer_;
};

void TrainingRun::OpenData() {
  CheckSameRun(comm_, config_, facts_);
  splits_ = OpenSplits(config_.data, config_.features, comm_);
  const DatasetSchema& schema = splits_.train.dataset->schema();
  FillOutputs(schema.label_names(), schema.number_labels(), &config_.model);
  const std::vector<ModelOutput> outputs = OutputsOf(config_.model);
  CheckTasks(config_.training.loss, outputs, schema);
  CheckWatchedOutput(config_, outputs);
  for (const Dataset* data :
       {splits_.train.dataset, splits_.eval ? splits_.eval->dataset : nullptr})
    if (data != nullptr) CheckBagWeights(config_.model, data->schema());
  ChooseMetrics(outputs, ModelOptionsOf(config_, schema), &config_);
  // Refuses numbers where the graph gives a probability, before there is a directory.
  if (std::any_of(outputs.begin(), outputs.end(),
                  [](const ModelOutput& output) { return output.loss == Loss::kSquaredError; }))
    MakeModel(ModelOptionsOf(config_, schema));
  if (splits_.eval) LabelColumns(EvaluatedOutputs(outputs, schema.label), *splits_.eval->dataset);
  groups_ = GroupsOf(config_, splits_, EvaluatedOutputs(outputs, schema.label), comm_);
  if (!config_.training.ranking.empty()) ReadItems();
  steps_ = NumSteps(config_, splits_.train.rows.size());
  of_run_ = config_;
  of_run_.optimizer.schedule = ScheduleOfRun(config_.optimizer.schedule, steps_);
}

void TrainingRun::ReadItems() {
  ranking_ = ItemsToRank(config_, splits_, comm_);
  const TrainingConfig& training = config_.training;
  const std::string& watched = training.early_stopping.output;
  const bool by_ranking =
      (training.watches_evaluations() && IsRankingMetric(training.early_stopping.metric)) ||
      (config_.optimizer.schedule.watches_evaluations() &&
       IsRankingMetric(config_.optimizer.schedule.plateau.metric));
  if (by_ranking && !ranking_->Ranks(watched))
    Fail(ErrorCode::kConfig,
         "training.early_stopping.output: '{}' is no match of a query and an item, so it has no "
         "metric of rankings: name one that is, or compare another metric",
         Escape(watched));
}

void TrainingRun::ClaimDirectories() {
  directories_ = ChooseDirectories(config_, options_.name, *options_.clock, comm_);
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() != 0) return;
    // Locking would create the directory. Where it exists, an earlier attempt may be about to write
    // a checkpoint.
    if (options_.must_resume && IsMissing(directories_.run) && !HoldsState(directories_))
      FailNothingToResume(directories_);
    // A run that an earlier version began may continue.
    if (!HoldsState(directories_) && !options_.must_resume) {
      const ModelOptions model = ModelOptionsOf(config_, splits_.train.dataset->schema());
      CheckInputsReachLogit(model);
      // A graph whose blocks do not fit is refused here, too.
      GroupsOf(*MakeModel(model), config_.optimizer.blocks);
      CheckBatchStatistics(model, config_.training.batch_size / config_.numerics.virtual_workers);
      CheckInitialModel(config_, *splits_.train.dataset, directories_.run, comm_);
      initial_model_checked_ = true;
    }
    locks_ = LockDirectories(directories_, options_.attempt,
                             [&] { return options_.requests->stops > 0; });
  });
  if (IsInStore(directories_.checkpoints) && !SharesRunDirectory(directories_.run, comm_))
    directories_.model = directories_.checkpoints + "/" + kModelName;
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() == 0) RemoveLeftovers();
  });
}

void TrainingRun::RemoveLeftovers() {
  std::vector<std::string> leftovers = MarkLeftoversForDeletion(directories_.checkpoints);
  if (IsInStore(directories_.model))
    for (std::string& path : MarkLeftoversForDeletion(directories_.checkpoints, kModelName))
      leftovers.push_back(std::move(path));
  cleanup_.Start([leftovers = std::move(leftovers)] {
    for (const std::string& path : leftovers) RemoveTree(path);
  });
}

void TrainingRun::FindPast() {
  resolved_ = config_;
  resolved_.run_dir = directories_.run;
  if (directories_.checkpoints != directories_.run + "/checkpoints")
    resolved_.checkpoint.dir = directories_.checkpoints;
  resolved_.features = FeaturesOf(splits_.train.dataset->schema());
  config_yaml_ = PrintConfig([&](ConfigFields& fields) { resolved_.Describe(fields); });
  recorded_ = DescribeRun(splits_, facts_);
  past_ = AgreeOnPastRun(directories_, resolved_, recorded_, steps_, options_.must_resume, comm_);
  if (!past_.checkpoints.empty() || !past_.model_sha256.empty()) return;
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() == 0 && !initial_model_checked_)
      CheckInitialModel(config_, *splits_.train.dataset, directories_.run, comm_);
  });
}

// Identifies the metric and the rows of a record of evaluations.
std::string TrainingRun::MeaningOfEvaluations(const std::string& watched,
                                              const std::string& metric) const {
  if (!splits_.eval) return "";
  const auto rows = [](const Split& split) {
    return fmt::format("{} {} {}", split.dataset->fingerprint(), split.rows.begin, split.rows.end);
  };
  const std::string meaning = fmt::format("{} {}", watched, rows(*splits_.eval));
  if (NeedsOf(metric) == Needs::kGroups)
    return fmt::format("{} by {}", meaning, groups_->meaning());
  if (!IsRankingMetric(metric) || !ranking_) return meaning;
  return fmt::format("{} at {} of {}", meaning, config_.training.ranking.front(),
                     rows(splits_.train));
}

bool TrainingRun::ComparesWeighted(const std::string& metric) const {
  return !WeightOfEvaluations(splits_).empty() && !IsRankingMetric(metric);
}

// Which has seen no evaluation yet.
Plateau TrainingRun::UnseenPlateau() const {
  const std::string& output = config_.training.early_stopping.output;
  const std::string& metric = config_.optimizer.schedule.plateau.metric;
  return Plateau(MeaningOfEvaluations(output.empty() ? metric : output + "." + metric, metric),
                 ComparesWeighted(metric));
}

// On other data, another step's model might be the best, or the run might have ended elsewhere.
// When it was evaluated is not compared.
void TrainingRun::CheckEvaluatedAlike() const {
  const TrainingConfig& training = config_.training;
  if (!training.keep_best && !past_.stopped_early) return;
  CheckpointReader model(directories_.model);
  const EarlyStoppingConfig& stopping = training.early_stopping;
  if (!CanContinue(ReadProgress(model),
                   EvaluationRecord(MeaningOfEvaluations(stopping.watched(), stopping.metric),
                                    ComparesWeighted(stopping.metric))))
    Fail(ErrorCode::kConfig,
         "{} is already trained, and {} by metrics of other data than data.eval now is (or "
         "other rows, weights, groups or items): `renzan eval {} --data {}` measures its model; to "
         "train by these evaluations, choose another --run-dir",
         directories_.run, training.keep_best ? "its model was chosen" : "its end was decided",
         directories_.run, config_.data.eval.path);
}

RunResult TrainingRun::WasTrained() {
  // With other evaluations, the learning rates and so the model might have been others.
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() != 0) return;
    if (config_.optimizer.schedule.watches_evaluations()) {
      CheckpointReader model(directories_.model);
      CheckSameEvaluations(ReadProgress(model), UnseenPlateau());
    }
    CheckEvaluatedAlike();
  });
  if (comm_.rank() == 0) {
    RecordFinished(directories_.run, past_.model_step, past_.model_sha256, *options_.clock);
    LogInfo(
        "{} is already trained{} step {}: model sha256 {}{}",
        IsInStore(directories_.model) ? directories_.checkpoints : directories_.run,
        config_.training.keep_best ? ", and its model is the best evaluation's, of" : " to",
        past_.model_step, past_.model_sha256,
        past_.stopped_early
            ? "; early stopping ended it: a larger training.early_stopping.patience continues it"
            : "");
  }
  return {RunResult::End::kWasTrained, directories_.run, past_.model_sha256};
}

void TrainingRun::Plan() {
  std::vector<double> pooling_factors;
  std::string unknown_values;
  RunWithHeartbeats(comm_, [&] {
    pooling_factors = EstimatePoolingFactors(splits_.train);
    if (comm_.rank() == 0) unknown_values = UnknownValuesAdvice(splits_.train);
  });
  if (!unknown_values.empty()) LogWarning("{}", unknown_values);
  spec_ = MakeRunSpec(of_run_, splits_.train.dataset->schema(), pooling_factors);
  if (ranking_) spec_.memory.ranking = ranking_->bytes();
  if (groups_) spec_.memory.grouped = splits_.eval->rows.size() * std::ssize(spec_.loss.tasks);
  if (groups_ && groups_->key() != nullptr) spec_.memory.key_groups = groups_->key()->bytes();
  if (comm_.rank() == 0)
    for (const std::string& effect : {LostEffects(spec_.model), EffectsOfSharedRows(spec_),
                                      NegativesOfNobody(spec_, splits_.train.dataset->schema())})
      if (!effect.empty()) LogWarning("{}", effect);
  plan_ =
      AgreeOnPlan(spec_, comm_, options_.threads, options_.restarted || !past_.checkpoints.empty());
  const std::vector<MemoryEstimate> memory =
      EstimateMemoryOfWorkers(spec_, plan_, comm_.world_size(), options_.threads);
  if (comm_.rank() == 0) LogInfo("memory of a worker: {}", Describe(MostOf(memory)));
  // Before the memory is checked: it names tables that are larger than they need be.
  if (comm_.rank() == 0) AdviseOnDisk();
  const MemoryEstimate& mine = memory[static_cast<size_t>(comm_.rank())];
  const int64_t room = config_.check_memory ? CheckMemory(mine, comm_) : mine.more_copies;
  most_copied_bytes_ = mine.few_copies + room;
}

void TrainingRun::AdviseOnDisk() const {
  constexpr int64_t kWorthALine = 1'000'000'000;
  const bool begins_new = config_.training.initialize_from.empty();
  const int64_t samples = std::min(splits_.train.rows.size(), steps_ * config_.training.batch_size);
  const DiskUse use = DiskUseOf(spec_, SavedSamples(config_, samples));
  std::vector<std::string> advice;
  if (begins_new)
    advice.push_back(UntouchedRowsAdvice(spec_, splits_.train.dataset->schema(), samples));
  // A run that goes on has its full checkpoint.
  int64_t model = IsInStore(directories_.model) ? 0 : use.model();
  int64_t checkpoint =
      IsInStore(directories_.checkpoints) || !past_.checkpoints.empty() ? 0 : use.checkpoint();
  if (model > 0 && checkpoint > 0 && AreOnOneFileSystem(directories_.run, directories_.checkpoints))
    model += std::exchange(checkpoint, 0);
  for (const auto& [dir, bytes] :
       {std::pair{directories_.run, model}, {directories_.checkpoints, checkpoint}})
    if (const auto free = bytes > 0 ? FreeBytes(dir) : std::nullopt)
      advice.push_back(DiskSpaceAdvice(use, bytes, dir, *free));
  std::erase(advice, "");
  for (const std::string& warning : advice) LogWarning("{}", warning);
  if (advice.empty() && use.model() >= kWorthALine) LogInfo("{}", Describe(use));
}

void TrainingRun::Build() {
  pool_.emplace(PoolThreads(spec_, comm_.world_size(), options_.threads));
  RunWithHeartbeats(comm_, [&] {
    state_.emplace(spec_, plan_, comm_, *pool_,
                   past_.checkpoints.empty() ? InitialValues::kDraw : InitialValues::kZero);
    step_ = MakeStep(*state_, comm_, CountIds(spec_, state_->model(), splits_.train, *pool_));
  });
}

void TrainingRun::SetInitialState() {
  const size_t tasks = spec_.loss.tasks.size();
  loop_.window.resize(tasks * static_cast<size_t>(pool_->num_threads()));
  loop_.watches.resize(tasks);
  const EarlyStoppingConfig& stopping = config_.training.early_stopping;
  loop_.evaluations = EvaluationRecord(MeaningOfEvaluations(stopping.watched(), stopping.metric),
                                       ComparesWeighted(stopping.metric));
  loop_.plateau = loop_.best_plateau = UnseenPlateau();
  std::map<std::string, std::string> start;
  if (!past_.checkpoints.empty()) {
    Resume();
    start = StartOf(resumed_->run);
  } else if (!config_.training.initialize_from.empty()) {
    start = Initialize(config_, *splits_.train.dataset, &*state_, comm_);
  }
  recorded_.merge(start);
  state_->dense_optimizer().set_earlier_steps(EarlierSteps(recorded_));
  state_->embeddings().set_earlier_steps(EarlierSparseSteps(recorded_));
}

void TrainingRun::Resume() {
  // FindPastRun has checked the newest one.
  resumed_ = LoadNewest(past_.checkpoints, *state_, comm_, [&](const std::string& path) {
    if (comm_.rank() == 0) CheckSameArithmetic(path, resolved_, recorded_);
  });
  loop_.step = resumed_->step;
  RestoreProgress(resumed_->progress, comm_.rank(), &loop_);
  if (config_.training.keep_best) ResetEvaluationsIfBestIsMissing(directories_, comm_, &loop_);
}

// The same command would begin another run where it does not name the run's directory.
std::string TrainingRun::HowToResume() const {
  if (options_.names_run_directory) return "the same command";
  return fmt::format("{}`renzan train --resume --run-dir {}`",
                     options_.attempt.job.empty() ? "" : "the job's next attempt, if any, or ",
                     directories_.run);
}

void TrainingRun::Observe() {
  const std::vector<std::string> hosts = GatherStrings(comm_, HostName());
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() != 0) return;
    observer_ = std::make_unique<RunObserver>(
        RunObserver::Options{.run_dir = directories_.run,
                             .model = directories_.model,
                             .says_run_directory = !options_.names_run_directory,
                             .how_to_resume = HowToResume(),
                             .status_copy = options_.status_copy,
                             .config_yaml = config_yaml_,
                             .config = &of_run_,
                             .splits = &splits_,
                             .outputs = EvaluatedOutputs(state_->model()),
                             .initialized_from = InitializedFrom(recorded_),
                             .facts = facts_,
                             .backend = comm_.backend(),
                             .hosts = hosts,
                             .threads = options_.threads,
                             .terminal = options_.terminal,
                             .clock = options_.clock,
                             .resumed = resumed_});
  });
}

Checkpointer::Options TrainingRun::CheckpointerOptions() {
  return {.dir = directories_.checkpoints,
          .config = config_.checkpoint,
          .config_yaml = config_yaml_,
          .run = recorded_,
          .best_step = config_.training.keep_best ? loop_.evaluations.best_step() : -1,
          .stop_notice_path = options_.stop_notice_path,
          .grace_seconds = options_.grace_seconds,
          .most_copied_bytes = most_copied_bytes_,
          .lock = locks_.checkpoints.get(),
          .requests = options_.requests,
          .clock = options_.clock,
          .observer = observer_.get()};
}

bool TrainingRun::TrainSteps() {
  checkpointer_.emplace(CheckpointerOptions(), *step_, comm_, loop_.step, steps_,
                        resumed_ ? resumed_->lineage : std::nullopt,
                        [&] { return SaveProgress(comm_, loop_); });
  StepProfiler profiler(options_.profile_steps, directories_.run + "/profile.json", comm_);
  bool finished = false;
  try {
    finished = Train(of_run_, steps_, splits_.train, splits_.eval, *step_, comm_, *options_.clock,
                     {.observer = observer_.get(),
                      .should_stop = [&](int64_t done) { return checkpointer_->ShouldStop(done); },
                      .after_step = [&] { profiler.OnStep(); },
                      .keep_best = [&](int64_t step) { checkpointer_->KeepBest(step); }},
                     &loop_, ranking_ ? &*ranking_ : nullptr, groups_ ? &*groups_ : nullptr);
  } catch (const DivergedError& error) {
    throw ExplainDivergence(error, splits_.train, config_.optimizer);
  }
  profiler.Finish();
  return finished;
}

RunResult TrainingRun::Stopped() {
  if (observer_) observer_->OnStopped();
  return {RunResult::End::kStopped, directories_.run, ""};
}

RunResult TrainingRun::SaveModel() {
  checkpointer_->Finish();
  const int64_t last = loop_.step;
  const int64_t model_step = config_.training.keep_best ? LoadBest(directories_, loop_.evaluations,
                                                                   last, step_->Updated(), comm_)
                                                        : last;
  const std::string sha256 = checkpointer_->SaveModel(
      directories_.model, model_step,
      {.progress = model_step == last
                       ? SaveEvaluations(loop_.scheduled_evaluations, loop_.scheduled_plateau)
                       : SaveEvaluations(loop_.evaluations.AtItsBest(), loop_.best_plateau),
       .run = DescribeEnd(config_.training, steps_, last < steps_)});
  if (observer_) observer_->OnDone(loop_, model_step, sha256);
  return {RunResult::End::kTrained, directories_.run, sha256};
}

}  // namespace

RunResult RunTraining(const TrainConfig& config, const RunOptions& options, Communicator& comm) {
  return TrainingRun(config, options, comm).Execute();
}

}  // namespace renzan
