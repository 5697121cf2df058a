#include "renzan/run/run_observer.h"

#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/dataset_cache.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/model/output_metric.h"
#include "renzan/observe/event_file.h"
#include "renzan/observe/metrics_log.h"
#include "renzan/observe/progress.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/observe/status_file.h"
#include "renzan/observe/status_writer.h"
#include "renzan/quality/gradient_error.h"
#include "renzan/run/left_out_rows.h"
#include "renzan/run_spec/schedule.h"

namespace renzan {
namespace {

// The metrics of an evaluation with tags under a prefix: "eval/auc".
template <typename Metrics>
void AddEvaluated(const std::string& prefix, OutputKind kind, const Metrics& metrics,
                  std::vector<Scalar>* scalars) {
  ForEachMetric(kind, metrics, [&](const OutputMetric& metric, double value) {
    if (metric.tag != nullptr) scalars->push_back({prefix + "/" + metric.tag, value});
  });
}

// The same of training's steps.
void AddTrained(const std::string& prefix, OutputKind kind, const OutputMetrics& metrics,
                std::vector<Scalar>* scalars) {
  for (const OutputMetric& metric : AllMetrics()) {
    if (metric.tag == nullptr || !metric.IsTrained(kind)) continue;
    const double value = metric.Of(metrics);
    if (IsShown(kind, value)) scalars->push_back({prefix + "/" + metric.tag, value});
  }
}

// NaN if such an output has no metric with this tag in training.
double TrainedValue(const OutputMetrics& metrics, OutputKind kind, std::string_view tag) {
  for (const OutputMetric& metric : AllMetrics())
    if (metric.tag != nullptr && metric.tag == tag && metric.IsTrained(kind))
      return metric.Of(metrics);
  return std::numeric_limits<double>::quiet_NaN();
}

// What a line about an evaluation says of its metrics. `best_auc`: follows the AUC.
template <typename Metrics>
std::string ScoresText(const Metrics& metrics, OutputKind kind, const std::string& best_auc = "") {
  std::vector<std::string> parts;
  ForEachMetric(kind, metrics, [&](const OutputMetric& metric, double value) {
    if (metric.line == nullptr) return;
    if (std::is_same_v<Metrics, WeightedMetrics> && !metric.in_weighted_line) return;
    parts.push_back(
        fmt::format("{} {}", metric.words, fmt::format(fmt::runtime(metric.line), value)));
    if (metric.value == &OutputMetrics::Auc) parts.back() += best_auc;
  });
  return parts.empty() ? "no AUC without rows of both labels"
                       : fmt::format("{}", fmt::join(parts, ", "));
}

// "/click", or "" of the only output: "eval/click/auc".
std::string OfOutput(std::span<const EvaluatedOutput> outputs, size_t index) {
  return outputs[index].name.empty() ? "" : "/" + outputs[index].name;
}

// ", Bayes-optimal 0.8012 (97.9 % of the way from 0.5)" for generated data evaluated completely.
std::string BayesOptimalText(const OpenedSplits& splits, double auc) {
  const Split& eval = *splits.eval;
  if (!eval.dataset->bayes_optimal() || eval.rows.size() != eval.dataset->num_rows()) return "";
  const double best = eval.dataset->bayes_optimal()->best_auc;
  return fmt::format(", Bayes-optimal {:.4f} ({:.1f} % of the way from 0.5)", best,
                     100.0 * (auc - 0.5) / (best - 0.5));
}

// How the loss differs from the one that is shown, or "".
std::string DescribeLoss(const LossConfig& loss, const WeightSummary& weight) {
  std::vector<std::string> parts;
  if (!weight.name.empty())
    parts.push_back(
        fmt::format("samples weighted by '{}' (mean {:.4g})", weight.name, weight.mean));
  if (loss.pos_weight != 1) parts.push_back(fmt::format("positives by {}", loss.pos_weight));
  if (loss.label_smoothing != 0)
    parts.push_back(fmt::format("labels smoothed by {}", loss.label_smoothing));
  if (parts.empty()) return "";
  return fmt::format("loss: {}; the metrics of steps count every sample once, with its own label",
                     fmt::join(parts, ", "));
}

// What evaluations do with weights, or "".
std::string DescribeWeights(const OpenedSplits& splits, const TrainConfig& config) {
  const std::string weight = WeightOfEvaluations(splits);
  if (weight.empty()) return "";
  const ScheduleConfig& schedule = config.optimizer.schedule;
  const bool lowers = schedule.watches_evaluations() && !IsRankingMetric(schedule.plateau.metric);
  std::string compared;
  if (config.training.watches_evaluations() &&
      !IsRankingMetric(config.training.early_stopping.metric))
    compared = lowers ? ", which early_stopping, keep_best and schedule.plateau compare"
                      : ", which early_stopping and keep_best compare";
  else if (lowers)
    compared = ", which schedule.plateau compares";
  return fmt::format("evaluations on {} count every sample once, and as much as its '{}'{}",
                     splits.eval->dataset->directory(), weight, compared);
}

// How scores are corrected for negatives that the training data lack, or "".
std::string DescribeNegatives(const OpenedSplits& splits) {
  const double trained = splits.train.dataset->schema().negatives_kept;
  std::string text;
  if (trained != 1)
    text = fmt::format("{} has {}: predict corrects scores for that",
                       splits.train.dataset->directory(), NegativesText(trained));
  if (!splits.eval) return text;
  const double evaluated = splits.eval->dataset->schema().negatives_kept;
  if (const float shift = LogitShift(trained, evaluated); shift != 0)
    text += fmt::format("{}evaluations on {}, which has {}, shift logits by {:.4f}",
                        text.empty() ? "" : "; ", splits.eval->dataset->directory(),
                        NegativesText(evaluated), shift);
  return text;
}

// "step-00001234: 640.2 MB, incremental, in 1.2 s, training waited 3 ms"
std::string Describe(const CheckpointReport& report) {
  return fmt::format("{}: {:.1f} MB, {}, in {:.1f} s, training waited {:.0f} ms", report.name,
                     static_cast<double>(report.bytes) / 1e6, Name(report.kind),
                     report.write_seconds, report.stall_seconds * 1000);
}

// "99.8 % of 51234 chunks were there when they were needed, the reader waited 0.3 s for the others;
// 153.1 MB fetched"
std::string Describe(const BlockCache::Stats& stats) {
  return fmt::format(
      "{:.1f} % of {} chunks were there when they were needed, the reader waited {:.1f} s for the "
      "others; {:.1f} MB fetched",
      100 * stats.hit_rate(), stats.needed, stats.waited_seconds,
      static_cast<double>(stats.fetched_bytes) / 1e6);
}

// Reports carry the number of steps done, so the next one is for a later step, except for an
// evaluation that was not finished when the checkpoint was taken.
MetricsLog::Next NextReports(const std::optional<ResumePoint>& resumed) {
  if (!resumed) return {};
  return {.training = resumed->step + 1,
          .evaluation = resumed->step + (EvaluationDue(resumed->progress) ? 0 : 1)};
}

int64_t NumTables(const DatasetSchema& schema) {
  int64_t tables = 0;
  for (size_t f = 0; f < schema.categorical.size(); ++f) tables += FirstOfTable(schema, f) == f;
  return tables;
}

}  // namespace

struct RunObserver::State {
  Options options;
  MetricsLog metrics_log;
  EventFile event_file;
  ProgressDisplay progress;
  RunManifest manifest;
  RunStatus status;
  StatusWriter status_writer;
  std::optional<StatusWriter> status_copy;
  Progress shown;  // with the loss and AUC of the last report
  bool warned_lost = false;
  // Where this process began: rates cover only its own steps.
  int64_t first_step = 0;
  double first_seconds = 0;

  // The output that decides when training stops, or else the first.
  size_t Watched() const {
    const std::string& watched = options.config->training.early_stopping.output;
    const std::vector<EvaluatedOutput>& outputs = options.outputs;
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const auto& output) { return output.name == watched; });
    return found == outputs.end() ? 0 : static_cast<size_t>(found - outputs.begin());
  }

  explicit State(Options given)
      : options(std::move(given)),
        metrics_log(options.run_dir + "/metrics.jsonl", NextReports(options.resumed)),
        event_file(options.run_dir, options.clock->UnixSeconds(), options.hosts[0],
                   NextReports(options.resumed).training),
        progress(STDERR_FILENO, options.terminal),
        status_writer(options.run_dir + "/status.json") {
    if (!options.status_copy.empty()) status_copy.emplace(options.status_copy);
    manifest.build = options.facts.build;
    manifest.config = options.config_yaml;
    manifest.seed = options.config->seed;
    manifest.isa = options.facts.isa;
    manifest.libraries = options.facts.libraries;
    manifest.initialized_from = options.initialized_from;
    manifest.hosts = options.hosts;
    manifest.started_unix_seconds = options.clock->UnixSeconds();
    const OpenedSplits& splits = *options.splits;
    const int64_t rows = splits.train.rows.size();
    manifest.left_out_rows = LeftOutRows(*options.config, rows, NumSteps(*options.config, rows));
    manifest.datasets[splits.train.dataset->directory()] = splits.train.dataset->fingerprint();
    if (splits.eval)
      manifest.datasets[splits.eval->dataset->directory()] = splits.eval->dataset->fingerprint();
  }

  // A full disk does not end training: records are lost, with one warning.
  void TryTo(const std::function<void()>& record) {
    try {
      record();
    } catch (const Error& error) {
      if (std::exchange(warned_lost, true)) return;
      progress.Clear();
      LogWarning("{}: training continues, but some metrics are not recorded", error.what());
    }
  }

  void Log(int64_t step, std::vector<Scalar> scalars) {
    const ScalarRecord record{step, options.clock->UnixSeconds(), std::move(scalars)};
    TryTo([&] { metrics_log.Add(record); });
    TryTo([&] { event_file.Add(record); });
  }

  void WriteManifest() { WriteRunManifest(options.run_dir + "/manifest.json", manifest); }
  // In the background, or all workers would wait for the disk.
  void WriteStatus() {
    status.updated_unix_seconds = options.clock->UnixSeconds();
    status_writer.Write(status);
    if (status_copy) status_copy->Write(status);
    WarnOfLostStatus();
  }
  // Waits until the final status is written, so that it is there when the process exits.
  void WriteLastStatus() {
    WriteStatus();
    status_writer.Flush();
    if (status_copy) status_copy->Flush();
    WarnOfLostStatus();
  }
  void WarnOfLostStatus() {
    for (StatusWriter* writer : {&status_writer, status_copy ? &*status_copy : nullptr})
      if (const auto error = writer != nullptr ? writer->TakeError() : std::nullopt)
        TryTo([&] { throw *error; });
  }

  // The samples that this process has trained on.
  double Samples(int64_t done) const {
    return static_cast<double>((done - first_step) * options.config->training.batch_size);
  }

  // `rate` in samples per second. The ETA assumes the average speed so far.
  void Advance(int64_t done, double seconds, double rate) {
    status.step = shown.step = done;
    status.samples_per_second = shown.samples_per_second = rate;
    shown.eta_seconds = (seconds - first_seconds) / static_cast<double>(done - first_step) *
                        static_cast<double>(status.steps - done);
    status.eta_seconds = shown.eta_seconds;
  }
};

RunObserver::RunObserver(Options options) : state_(new State(std::move(options))) {
  if (const std::optional<ResumePoint>& resumed = state_->options.resumed) {
    state_->status.step = resumed->step;
    state_->status.last_checkpoint = {resumed->step, resumed->unix_seconds};
  }
  state_->WriteManifest();
  state_->WriteStatus();
}

RunObserver::~RunObserver() {
  if (state_->status.state == "done" || state_->status.state == "stopped") return;
  // The run failed.
  state_->status.state = "failed";
  state_->WriteLastStatus();
}

void RunObserver::OnStart(const LoopState& first, int64_t steps) {
  const Options& o = state_->options;
  const TrainConfig& config = *o.config;
  if (!o.resumed && o.says_run_directory) LogInfo("the run is in {}", o.run_dir);
  LogInfo("{} on {}: {}, {}; {} of {}; {} x {} ({}, {})", config.model.type,
          o.splits->train.dataset->directory(), Counted(o.splits->train.rows.size(), "sample"),
          Counted(NumTables(o.splits->train.dataset->schema()), "table"), Counted(steps, "step"),
          config.training.batch_size, Counted(std::ssize(o.hosts), "worker"),
          Counted(o.threads, "thread"), o.backend, o.facts.isa);
  for (const std::string& note :
       {DescribeLoss(config.training.loss, o.splits->train.dataset->manifest().weight),
        DescribeWeights(*o.splits, config), DescribeNegatives(*o.splits)})
    if (!note.empty()) LogInfo("{}", note);
  if (o.resumed) LogInfo("resuming from {} at step {}", o.resumed->name, first.step);
  const bool was_finished = o.resumed && !o.resumed->lineage;
  if (was_finished && first.step < steps)
    LogInfo("the finished run goes on from step {} to {} with {}", first.step, steps,
            DescribeLearningRates(config.optimizer, first.step, first.plateau.factor()));
  for (const std::string& warning : ScheduleWarnings(config.optimizer.schedule, first.step, steps))
    LogWarning("{}", warning);
  const std::string left_out = LeftOutAdvice(config, o.splits->train.rows.size(), steps);
  if (!left_out.empty()) LogWarning("{}", left_out);
  if (config.checkpoint.quantize != "none")
    LogWarning(
        "checkpoint.quantize: a run resumed from an incremental checkpoint with 8-bit rows will "
        "not be bit-identical to an uninterrupted one");
  state_->first_step = first.step;
  state_->first_seconds = first.seconds;
  state_->status.state = "running";
  state_->status.working_since_unix_seconds = o.clock->UnixSeconds();
  state_->status.steps = state_->shown.steps = steps;
  state_->WriteStatus();
}

void RunObserver::OnStep(int64_t done, double seconds) {
  State& s = *state_;
  s.Advance(done, seconds, s.Samples(done) / (seconds - s.first_seconds));
  // Only once there is a loss to show. OnReport shows the last step.
  if (!std::isnan(s.shown.loss) && done < s.shown.steps)
    s.progress.Update(s.shown, s.options.clock->MonotonicSeconds());
  constexpr double kStatusSeconds = 5;
  if (s.options.clock->UnixSeconds() - s.status.updated_unix_seconds > kStatusSeconds)
    s.WriteStatus();
}

void RunObserver::OnReport(const StepReport& report) {
  State& s = *state_;
  std::vector<Scalar> scalars;
  const std::vector<EvaluatedOutput>& outputs = s.options.outputs;
  for (size_t task = 0; task < report.windows.size(); ++task)
    AddTrained("train" + OfOutput(outputs, task), outputs[task].kind(), report.windows[task],
               &scalars);
  scalars.push_back({"train/samples_per_second", report.samples_per_second});
  scalars.push_back({"train/learning_rate_factor", report.learning_rate_factor});
  if (const WireRange& range = report.gradient_range; range.values > 0) {
    const double values = static_cast<double>(range.values);
    scalars.push_back({"comm/backward_overflow", static_cast<double>(range.overflowed) / values});
    scalars.push_back({"comm/backward_underflow", static_cast<double>(range.underflowed) / values});
  }
  if (const std::optional<WorstTable> worst = WorstOf(report.gradient_errors))
    scalars.push_back({"comm/backward_error_to_noise", worst->error_to_noise});
  if (s.options.config->optimizer.max_gradient_norm > 0)
    scalars.push_back({"train/gradient_norm", report.gradient_norm});
  if (const DatasetCache* cache = s.options.splits->train.dataset->cache()) {
    const BlockCache::Stats stats = cache->cache().stats();
    scalars.push_back({"data/cache_hit_rate", stats.hit_rate()});
    scalars.push_back({"data/cache_waited_seconds", stats.waited_seconds});
    scalars.push_back({"data/cache_fetched_bytes", static_cast<double>(stats.fetched_bytes)});
  }
  s.Log(report.step, std::move(scalars));
  const size_t shown = s.Watched();
  s.shown.output = outputs[shown].name;
  const auto value = [&](std::string_view tag) {
    return TrainedValue(report.windows[shown], outputs[shown].kind(), tag);
  };
  s.shown.loss = value("loss");
  s.shown.auc = value("auc");
  s.shown.rmse = value("rmse");
  s.shown.measured_at = report.step;
  s.Advance(report.step, report.seconds, report.samples_per_second);
  s.WriteStatus();
  s.progress.Update(s.shown, s.options.clock->MonotonicSeconds());
}

void RunObserver::OnEvaluation(int64_t step, std::span<const EvaluatedOutput> outputs,
                               std::span<const Evaluation> evaluations,
                               const std::string& verdict) {
  std::vector<Scalar> scalars;
  state_->progress.Clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputMetrics& metrics = evaluations[i].metrics;
    const std::string prefix = "eval" + OfOutput(outputs, i);
    const OutputKind kind = outputs[i].kind();
    AddEvaluated(prefix, kind, metrics, &scalars);
    std::string more;
    if (const auto& its = evaluations[i].weighted) {
      AddEvaluated(prefix + "/weighted", kind, *its, &scalars);
      more = "; weighted: " + ScoresText(*its, kind);
    }
    if (const auto& groups = evaluations[i].groups; groups && IsShown(kind, groups->once.Value())) {
      scalars.push_back({prefix + "/group_auc", groups->once.Value()});
      more += fmt::format("; group AUC by {} {:.4f}", state_->options.config->training.group_by,
                          groups->once.Value());
      if (groups->weighted) {
        scalars.push_back({prefix + "/weighted/group_auc", groups->weighted->Value()});
        more += fmt::format(", weighted {:.4f}", groups->weighted->Value());
      }
    }
    if (const auto& ranking = evaluations[i].ranking) {
      const std::vector<int64_t>& ranks = state_->options.config->training.ranking;
      for (const auto& [name, value] : NamedValues(*ranking, ranks))
        scalars.push_back({prefix + "/" + name, value});
      const int64_t k = ranks.front();
      more += fmt::format("; of {}: HR@{} {:.4f}, NDCG@{} {:.4f}, MRR {:.4f}",
                          Counted(ranking->candidates(), "item"), k, ranking->HitRate(k), k,
                          ranking->Ndcg(k), ranking->ReciprocalRank());
    }
    const bool is_watched = i == state_->Watched();
    const std::string best_auc =
        i == 0 ? BayesOptimalText(*state_->options.splits, metrics.Auc()) : "";
    LogInfo("eval at step {}: {}{}{}{}{}", step,
            outputs[i].name.empty() ? "" : outputs[i].name + ": ",
            ScoresText(metrics, kind, best_auc), more, verdict.empty() || !is_watched ? "" : "; ",
            is_watched ? verdict : "");
  }
  state_->Log(step, std::move(scalars));
}

void RunObserver::OnPlateau(double factor) {
  LogInfo("no improvement for {}: the learning rates are {:.4g} of the schedule's from here on",
          Counted(state_->options.config->optimizer.schedule.plateau.patience, "evaluation"),
          factor);
}

void RunObserver::OnAdvice(const std::string& advice) {
  state_->progress.Clear();
  LogWarning("{}", advice);
}

void RunObserver::OnCheckpoint(const CheckpointReport& report) {
  State& s = *state_;
  s.progress.Clear();
  if (!report.error.empty()) {
    LogWarning("{} could not be written: {}; {}", report.name, report.error,
               s.status.last_checkpoint ? fmt::format("the last checkpoint is at step {}",
                                                      s.status.last_checkpoint->step)
                                        : "there is no checkpoint yet");
    return;
  }
  LogInfo("checkpoint {}", Describe(report));
  s.status.last_checkpoint = {report.step, s.options.clock->UnixSeconds()};
  s.WriteStatus();
}

void RunObserver::OnStopping(int64_t step, bool saves) {
  State& s = *state_;
  s.progress.Clear();
  if (saves)
    LogInfo("stop requested: writing a last checkpoint at step {}", step);
  else
    LogInfo("stop requested at step {}: there is nothing new to save", step);
  s.status.state = "stopping";
  s.status.step = step;
  s.WriteStatus();
}

void RunObserver::OnStopped() {
  State& s = *state_;
  s.status.state = "stopped";
  s.WriteLastStatus();
  LogInfo("stopped at step {} of {}; {} resumes from {}", s.status.step, s.status.steps,
          s.options.how_to_resume,
          s.status.last_checkpoint ? fmt::format("step {}", s.status.last_checkpoint->step)
                                   : "the beginning");
}

void RunObserver::OnDone(const LoopState& state, int64_t model_step,
                         const std::string& model_sha256) {
  State& s = *state_;
  const bool early = state.step < s.status.steps;
  s.manifest.model_sha256 = model_sha256;
  s.manifest.steps = model_step;
  s.WriteManifest();
  s.status.state = "done";
  s.status.step = s.status.steps = state.step;
  s.status.eta_seconds = 0;
  s.WriteLastStatus();
  s.progress.Clear();
  const double seconds = state.seconds - s.first_seconds;
  LogInfo("trained {} in {} ({:.1f}k samples/s){}", Counted(state.step - s.first_step, "step"),
          SecondsText(seconds), seconds > 0 ? s.Samples(state.step) / seconds / 1000 : 0,
          s.first_step > 0 ? fmt::format(", {} in all", state.step) : "");
  if (const DatasetCache* cache = s.options.splits->train.dataset->cache())
    LogInfo("data cache: {}", Describe(cache->cache().stats()));
  const EarlyStoppingConfig& stopping = s.options.config->training.early_stopping;
  if (early)
    LogInfo("stopped early at step {}: {}, and the patience is {}", state.step,
            state.evaluations.Describe(stopping), stopping.patience);
  if (model_step != state.step)
    LogInfo("the model is the one of step {}, with the best {} ({:.5f})", model_step,
            state.evaluations.MetricName(stopping), state.evaluations.best_value());
  LogInfo("model {} sha256 {}", s.options.model, model_sha256);
}

}  // namespace renzan
