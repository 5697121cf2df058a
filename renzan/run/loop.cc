#include "renzan/run/loop.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/trace.h"
#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/model/model.h"
#include "renzan/model/output_metric.h"
#include "renzan/quality/finiteness.h"
#include "renzan/quality/gradient_error.h"
#include "renzan/quality/gradient_range.h"
#include "renzan/run/left_out_rows.h"
#include "renzan/run_spec/negatives.h"
#include "renzan/run_spec/schedule.h"

namespace renzan {
namespace {

// The metrics of each task since the last call, over all threads and workers. Resets them.
std::vector<OutputMetrics> TakeWindows(Communicator& comm, LoopState* state) {
  std::vector<OutputMetrics> windows;
  for (size_t task = 0; task < state->watches.size(); ++task) {
    OutputMetrics mine;
    for (OutputMetrics& metrics : WindowOf(state, task)) {
      mine.Merge(metrics);
      metrics = OutputMetrics();
    }
    windows.push_back(MergeMetrics(comm, mine));
  }
  return windows;
}

// Even a model with finite parameters may give infinite predictions.
void FailUnlessFinite(const OutputMetrics& evaluation, int64_t step) {
  if (evaluation.non_finite > 0)
    Fail(ErrorCode::kSoftware,
         "evaluation at step {}: {} of {} predictions are NaN or infinite, so the model is not "
         "saved; lower the learning rates (try a tenth), or look for values in data.eval that are "
         "far outside the range of data.train",
         step, evaluation.non_finite, evaluation.non_finite + evaluation.count);
}

// Whether the training data is known to hold one value of a label only.
bool HasOneValue(const Split& train, const std::string& label) {
  return train.dataset->manifest().HasOneValue(label);
}

std::string OneClassAdvice(const Split& train, const std::string& label, const char* which) {
  return fmt::format(
      "label '{}' {}, so the model can learn only a constant: check the label rule with which {} "
      "was imported, and data.train.rows",
      Escape(label), which, train.dataset->directory());
}

}  // namespace

int64_t NumSteps(const TrainConfig& config, int64_t rows) {
  CheckFillsBatch(config, rows);
  const TrainingConfig& training = config.training;
  const int64_t per_epoch = StepsPerEpoch(rows, training.batch_size);
  const int64_t steps =
      static_cast<int64_t>(std::llround(training.epochs * static_cast<double>(per_epoch)));
  return training.max_steps < 0 ? steps : std::min(steps, training.max_steps);
}

void CheckWatchedOutput(const TrainConfig& config, std::span<const ModelOutput> outputs) {
  const std::string& watched = config.training.early_stopping.output;
  const bool decides =
      config.training.watches_evaluations() || config.optimizer.schedule.watches_evaluations();
  std::vector<std::string> names;
  for (const ModelOutput& output : outputs)
    if (!output.label.empty()) names.push_back(output.name);
  const bool is_there = std::find(names.begin(), names.end(), watched) != names.end();
  const bool need_not = watched.empty() && (names.size() < 2 || !decides);
  if (is_there || need_not) return;
  if (names.size() < 2)
    Fail(ErrorCode::kConfig,
         "training.early_stopping.output: '{}' is no output, because the model has only one: leave "
         "it out",
         Escape(watched));
  Fail(ErrorCode::kConfig, "training.early_stopping.output: {}; name one of {}",
       watched.empty() ? "several outputs are evaluated, so it must say which decides"
                       : fmt::format("'{}' is no output that has a label", Escape(watched)),
       fmt::join(names, ", "));
}

namespace {

// What a recorded configuration has of a run in which nothing watched evaluations.
bool IsDefaultMetric(const std::string& metric) {
  return metric.empty() || metric == DefaultMetric(OutputKind::kProbability) ||
         metric == DefaultMetric(OutputKind::kNumber);
}

// `ranks`: there is training.ranking.
void ChooseMetric(OutputKind kind, bool ranks, const char* key, bool decides, std::string* metric) {
  const bool is_score = kind == OutputKind::kScore;
  const std::string by_default =
      DefaultMetric(is_score && !(decides && ranks) ? OutputKind::kProbability : kind);
  if (!decides) {
    if (IsDefaultMetric(*metric)) *metric = by_default;
    return;
  }
  if (metric->empty()) *metric = by_default;
  if (FindComparedMetric(*metric)->IsOf(kind)) return;
  if (is_score)
    Fail(ErrorCode::kConfig,
         "{}: {} means nothing for an output that compares items, whose evaluations give "
         "scores and no probabilities: set training.ranking: [10], and this to ndcg, hr or mrr, or "
         "to "
         "auc where both labels occur",
         key, *metric);
  Fail(ErrorCode::kConfig, "{}: {} is no metric of an output that learns by {}: choose one of {}",
       key, *metric, kind == OutputKind::kNumber ? "squared_error" : "binary_cross_entropy",
       fmt::join(ComparedMetricNames(kind), ", "));
}

}  // namespace

void ChooseMetrics(std::span<const ModelOutput> outputs, const ModelOptions& model,
                   TrainConfig* config) {
  EarlyStoppingConfig& stopping = config->training.early_stopping;
  const auto decides = std::find_if(outputs.begin(), outputs.end(), [&](const ModelOutput& each) {
    return stopping.output.empty() ? !each.label.empty() || each.name.empty()
                                   : each.name == stopping.output;
  });
  CHECK(decides != outputs.end());
  ScheduleConfig& schedule = config->optimizer.schedule;
  const bool watches = config->training.watches_evaluations() || schedule.watches_evaluations();
  const bool compares =
      watches && MakeModel(model)->ComparesItems(static_cast<size_t>(decides - outputs.begin()));
  const OutputKind kind = KindOf(decides->loss, compares);
  const bool ranks = !config->training.ranking.empty();
  ChooseMetric(kind, ranks, "training.early_stopping.metric",
               config->training.watches_evaluations(), &stopping.metric);
  ChooseMetric(kind, ranks, "optimizer.schedule.plateau.metric", schedule.watches_evaluations(),
               &schedule.plateau.metric);
}

bool IsEvaluationStep(const TrainingConfig& config, int64_t steps_per_epoch, int64_t done) {
  if (config.eval_every > 0) return done > 0 && done % config.eval_every == 0;
  if (config.eval_every_epochs <= 0) return false;
  // The step nearest to a multiple of the period.
  const double period =
      std::max(1.0, config.eval_every_epochs * static_cast<double>(steps_per_epoch));
  const double multiple = std::round(static_cast<double>(done) / period);
  return multiple > 0 && std::llround(multiple * period) == done;
}

namespace {

class TrainingLoop {
 public:
  TrainingLoop(const TrainConfig& config, int64_t steps, const Split& train,
               const std::optional<Split>& eval, const ItemRanking* ranking,
               const RowGroups* groups, Step& model, Communicator& comm, const Clock& clock,
               const TrainCallbacks& callbacks, LoopState* state)
      : config_(config),
        steps_(steps),
        train_(train),
        eval_(eval),
        ranking_(ranking),
        groups_(groups),
        model_(model),
        comm_(comm),
        clock_(clock),
        callbacks_(callbacks),
        observer_(callbacks.observer),
        state_(*state),
        steps_per_epoch_(StepsPerEpoch(train.rows.size(), config.training.batch_size)),
        outputs_(EvaluatedOutputs(model.model(), train.dataset->schema().label)),
        guards_(config.comm.guard && model.spec().numerics.backward != RowCodec::kFloat32),
        sees_all_(state->step == 0),
        loader_(*train.dataset,
                {.seed = config.seed,
                 .row_begin = train.rows.begin,
                 .row_end = train.rows.end,
                 .global_batch = config.training.batch_size,
                 .slice_begin = model.slice_begin(),
                 .slice_end = model.slice_end(),
                 .first_step = state->step,
                 .num_steps = steps - state->step,
                 .shuffle = {.enabled = config.data.shuffle},
                 .readers = model.batch_readers()},
                DrawsNegatives(model.spec(), state->step, model.slice_begin())) {}

  bool Run() {
    Begin();
    if (ShouldStop()) return false;
    // The end of a shorter run, where this one would not evaluate: the result must not count.
    if (state_.step < steps_ && !EvaluatesNow()) state_.evaluation_due = false;
    if (state_.evaluation_due && state_.step < steps_ && !EvaluateModel()) return false;
    KeepWhatIsBest();
    const Batch* batch = Continues() ? NextBatch() : nullptr;
    window_start_ = clock_.MonotonicSeconds();
    while (Continues()) {
      const Batch* const next = state_.step + 1 < steps_ ? NextBatch() : nullptr;
      RunStep(*batch, next);
      batch = next;
      if ((IsReport(state_.step) || EvaluatesNow()) && !ReportAndEvaluate()) return false;
      state_.evaluation_due = state_.step == steps_;  // a run that resumes here starts with it
      if (ShouldStop()) return false;
    }
    AdviseOnOneClass();
    return state_.step < steps_ || EvaluateModel();
  }

 private:
  const TrainingConfig& training() const { return config_.training; }
  bool ShouldStop() const { return callbacks_.should_stop(state_.step); }
  bool Continues() const {
    return state_.step < steps_ && !state_.evaluations.StopsEarly(training().early_stopping);
  }
  // After `done` steps.
  bool IsReport(int64_t done) const { return done % training().log_every == 0 || done == steps_; }
  bool EvaluatesNow() const {
    return IsEvaluationStep(training(), steps_per_epoch_, state_.step) && state_.step != steps_;
  }

  void Begin();
  void KeepWhatIsBest();
  const Batch* NextBatch();
  void RunStep(const Batch& batch, const Batch* next);
  // These return false if they were stopped; the resumed run then repeats the evaluation.
  bool ReportAndEvaluate();
  bool EvaluateModel();
  bool RankItems(Predictor& predictor, std::span<Evaluation> evaluations);
  // The one that decides.
  const Evaluation& Watched(std::span<const Evaluation> evaluations) const;
  void Report(double seconds);
  void Advise(const StepReport& report);
  void AdviseOnOneClass();
  void AdviseOnGroups(std::span<const Evaluation> evaluations);

  const TrainConfig& config_;
  const int64_t steps_;
  const Split& train_;
  const std::optional<Split>& eval_;
  const ItemRanking* const ranking_;
  const RowGroups* const groups_;
  Step& model_;
  Communicator& comm_;
  const Clock& clock_;
  const TrainCallbacks& callbacks_;
  TrainObserver* const observer_;
  LoopState& state_;
  const int64_t steps_per_epoch_;
  const std::vector<EvaluatedOutput> outputs_;
  const bool guards_;    // against rounding on the wire
  const bool sees_all_;  // this process trains on all samples of the run
  BatchLoader loader_;

  double window_start_ = 0;
  int64_t window_steps_ = 0;  // since the last report
  // Seen by this process, by task.
  std::vector<int64_t> samples_ = std::vector<int64_t>(outputs_.size()), positives_ = samples_;
  bool advised_on_range_ = false, advised_on_error_ = false, advised_on_groups_ = false;
};

void TrainingLoop::Begin() {
  state_.scheduled_evaluations = state_.evaluations;
  state_.scheduled_plateau = state_.plateau;
  if (observer_ == nullptr) return;
  observer_->OnStart(state_, steps_);
  for (size_t task = 0; task < outputs_.size(); ++task)
    if (const std::string& label = outputs_[task].label;
        !outputs_[task].compares_items && HasOneValue(train_, label))
      observer_->OnAdvice(OneClassAdvice(train_, label, "is the same in all rows that have it"));
}

// The run may have resumed at its best step, whose checkpoint must then be kept.
void TrainingLoop::KeepWhatIsBest() {
  if (training().keep_best && state_.evaluations.best_step() == state_.step && state_.step < steps_)
    callbacks_.keep_best(state_.step);
}

const Batch* TrainingLoop::NextBatch() {
  const TraceSpan span("wait for batch");
  return &loader_.Next();
}

void TrainingLoop::RunStep(const Batch& batch, const Batch* next) {
  model_.Run({.slice = batch,
              .step = state_.step,
              .metrics = state_.window,
              .next = next,
              .rate_factor = state_.plateau.factor(),
              .measure_gradients = guards_ && IsReport(state_.step + 1)});
  if (callbacks_.after_step) callbacks_.after_step();
  state_.gradient_range.Add(model_.TakeGradientRange());
  ++window_steps_;
  ++state_.step;
  if (observer_)
    observer_->OnStep(state_.step, state_.seconds + clock_.MonotonicSeconds() - window_start_);
}

bool TrainingLoop::ReportAndEvaluate() {
  model_.Await();
  CheckFinite(comm_, model_.finiteness());
  const double now = clock_.MonotonicSeconds();
  Report(std::max(now - window_start_, 1e-9));
  const double evaluation_start = clock_.MonotonicSeconds();
  if (EvaluatesNow() && !EvaluateModel()) return false;
  // Reporting takes time from training and counts; evaluating does not.
  window_start_ = now + clock_.MonotonicSeconds() - evaluation_start;
  window_steps_ = 0;
  return true;
}

void TrainingLoop::Report(double seconds) {
  state_.seconds += seconds;
  StepReport report{
      .step = state_.step,
      .steps = steps_,
      .windows = TakeWindows(comm_, &state_),
      .gradient_range = MergeRanges(comm_, std::exchange(state_.gradient_range, {})),
      .samples_per_second = static_cast<double>(window_steps_ * training().batch_size) / seconds,
      .learning_rate_factor =
          LearningRateFactor(config_.optimizer.schedule, state_.step - 1) * state_.plateau.factor(),
      .gradient_norm = model_.gradient_norm(),
      .seconds = state_.seconds};
  for (size_t task = 0; task < report.windows.size(); ++task) {
    samples_[task] += report.windows[task].count;
    positives_[task] += report.windows[task].positives;
  }
  if (guards_ && IsReport(state_.step))
    report.gradient_errors =
        MergeErrors(comm_, model_.spec().numerics.virtual_workers, model_.GradientErrors());
  std::vector<std::string> advice;
  for (size_t task = 0; task < state_.watches.size(); ++task) {
    // Numbers have no AUC to watch.
    if (outputs_[task].loss != Loss::kBinaryCrossEntropy) continue;
    if (const auto its = state_.watches[task].Observe(state_.step, report.windows[task]))
      advice.push_back(outputs_[task].name.empty()
                           ? *its
                           : fmt::format("output {}: {}", outputs_[task].name, *its));
  }
  if (observer_ == nullptr) return;
  observer_->OnReport(report);
  for (const std::string& text : advice) observer_->OnAdvice(text);
  Advise(report);
}

// About what the wire does to gradients; each advice at most once.
void TrainingLoop::Advise(const StepReport& report) {
  if (!advised_on_range_) {
    const auto advice =
        GradientRangeAdvice(report.gradient_range, model_.spec().numerics.backward_scale);
    if (advice) observer_->OnAdvice(*advice);
    advised_on_range_ = advice.has_value();
  }
  if (advised_on_error_) return;
  const auto worst = WorstOf(report.gradient_errors);
  if (!worst) return;
  const auto advice = GradientErrorAdvice(model_.spec().tables[worst->table].name,
                                          worst->error_to_noise, config_.comm);
  if (advice) observer_->OnAdvice(*advice);
  advised_on_error_ = advice.has_value();
}

bool TrainingLoop::EvaluateModel() {
  state_.evaluation_due = true;
  if (eval_) {
    const float shift = LogitShift(train_.dataset->schema().negatives_kept,
                                   eval_->dataset->schema().negatives_kept);
    StepPredictor predictor(model_);
    auto evaluations =
        Evaluate(predictor, comm_, *eval_->dataset, eval_->rows, outputs_, training().batch_size,
                 shift, groups_, [&] { return ShouldStop(); });
    if (!evaluations) return false;
    for (const Evaluation& evaluation : *evaluations)
      FailUnlessFinite(evaluation.metrics, state_.step);
    if (ranking_ != nullptr && !RankItems(predictor, *evaluations)) return false;
    const Evaluation& watched = Watched(*evaluations);
    const bool best = training().watches_evaluations() &&
                      state_.evaluations.Observe(training().early_stopping, state_.step, watched);
    const ScheduleConfig& schedule = config_.optimizer.schedule;
    const bool lowers = schedule.watches_evaluations() &&
                        state_.plateau.Observe(schedule.plateau, state_.step, watched);
    if (best) state_.best_plateau = state_.plateau;
    if (IsEvaluationStep(training(), steps_per_epoch_, state_.step)) {
      state_.scheduled_evaluations = state_.evaluations;
      state_.scheduled_plateau = state_.plateau;
    }
    if (observer_)
      observer_->OnEvaluation(state_.step, outputs_, *evaluations,
                              state_.evaluations.Describe(training().early_stopping));
    AdviseOnGroups(*evaluations);
    if (observer_ && lowers && state_.step < steps_) observer_->OnPlateau(state_.plateau.factor());
    state_.evaluation_due = false;
    // The model of the last step is saved at the end anyway.
    if (best && training().keep_best && state_.step < steps_) callbacks_.keep_best(state_.step);
  }
  state_.evaluation_due = false;
  return true;
}

bool TrainingLoop::RankItems(Predictor& predictor, std::span<Evaluation> evaluations) {
  const auto rankings =
      ranking_->Rank(predictor, comm_, training().batch_size, [&] { return ShouldStop(); });
  if (!rankings) return false;
  for (const Ranking& ranking : *rankings)
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].name == ranking.output) {
        evaluations[i].ranking = ranking.metrics;
        evaluations[i].ranked_at = training().ranking.front();
      }
  return true;
}

const Evaluation& TrainingLoop::Watched(std::span<const Evaluation> evaluations) const {
  const std::string& output = training().early_stopping.output;
  const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                  [&](const auto& each) { return each.name == output; });
  // CheckWatchedOutput() has seen that it is there, if anything depends on it.
  return evaluations[found == outputs_.end() ? 0 : static_cast<size_t>(found - outputs_.begin())];
}

// At the first evaluation.
void TrainingLoop::AdviseOnGroups(std::span<const Evaluation> evaluations) {
  if (observer_ == nullptr || std::exchange(advised_on_groups_, true)) return;
  for (const Evaluation& evaluation : evaluations) {
    if (!evaluation.groups) continue;
    const std::string advice =
        UnseenGroupAdvice(training().group_by, *eval_->dataset, evaluation.groups->unseen_rows,
                          evaluation.groups->rows);
    if (!advice.empty()) return observer_->OnAdvice(advice);
  }
}

void TrainingLoop::AdviseOnOneClass() {
  for (size_t task = 0; task < outputs_.size(); ++task) {
    if (outputs_[task].compares_items) continue;  // it learns from positives alone
    const bool saw_one_class = sees_all_ && samples_[task] > 0 &&
                               outputs_[task].loss == Loss::kBinaryCrossEntropy &&
                               (positives_[task] == 0 || positives_[task] == samples_[task]);
    const std::string& label = outputs_[task].label;
    if (observer_ && (saw_one_class || HasOneValue(train_, label)))
      observer_->OnAdvice(
          OneClassAdvice(train_, label, "was the same in all rows that were trained on"));
  }
}

}  // namespace

bool Train(const TrainConfig& config, int64_t steps, const Split& train,
           const std::optional<Split>& eval, Step& model, Communicator& comm, const Clock& clock,
           const TrainCallbacks& callbacks, LoopState* state, const ItemRanking* ranking,
           const RowGroups* groups) {
  return TrainingLoop(config, steps, train, eval, ranking, groups, model, comm, clock, callbacks,
                      state)
      .Run();
}

}  // namespace renzan
