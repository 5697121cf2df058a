#include "renzan/train/run_observer.h"

#include <unistd.h>

#include <cmath>

#include "renzan/base/log.h"
#include "renzan/train/event_file.h"
#include "renzan/train/metrics_log.h"
#include "renzan/train/progress.h"
#include "renzan/train/run_manifest.h"
#include "renzan/train/status_file.h"

namespace renzan {
namespace {

// The tags of one set of metrics under a prefix: "eval/auc".
std::vector<Scalar> Scalars(const std::string& prefix, const BinaryMetrics& metrics) {
  return {{prefix + "/loss", metrics.LogLoss()},
          {prefix + "/auc", metrics.Auc()},
          {prefix + "/normalized_entropy", metrics.NormalizedEntropy()},
          {prefix + "/calibration", metrics.Calibration()}};
}

// ", best reachable 0.8012 (97.9 % of the way from 0.5)" for generated data that was read whole.
std::string BestReachable(const OpenedSplits& splits, double auc) {
  const Split& eval = *splits.eval;
  if (!eval.dataset->planted() || eval.rows.size() != eval.dataset->num_rows()) return "";
  const double best = eval.dataset->planted()->best_auc;
  return fmt::format(", best reachable {:.4f} ({:.1f} % of the way from 0.5)", best,
                     100.0 * (auc - 0.5) / (best - 0.5));
}

}  // namespace

struct RunObserver::State {
  Options options;
  MetricsLog metrics_log;
  EventFile event_file;
  ProgressDisplay progress;
  RunManifest manifest;
  RunStatus status;
  Progress shown;  // loss and AUC of the last report

  explicit State(Options given)
      : options(std::move(given)),
        metrics_log(options.run_dir + "/metrics.jsonl"),
        event_file(options.run_dir, options.clock->UnixSeconds(), options.hosts[0]),
        progress(STDERR_FILENO, options.terminal) {
    manifest.program_version = RENZAN_VERSION;
    manifest.config = options.config_yaml;
    manifest.seed = options.config->seed;
    manifest.isa = options.isa;
    manifest.libraries = options.libraries;
    manifest.hosts = options.hosts;
    manifest.started_unix_seconds = options.clock->UnixSeconds();
    const OpenedSplits& splits = *options.splits;
    manifest.datasets[splits.train.dataset->directory()] = splits.train.dataset->fingerprint();
    if (splits.eval)
      manifest.datasets[splits.eval->dataset->directory()] = splits.eval->dataset->fingerprint();
  }

  void Log(int64_t step, std::vector<Scalar> scalars) {
    const ScalarRecord record{step, options.clock->UnixSeconds(), std::move(scalars)};
    metrics_log.Add(record);
    event_file.Add(record);
  }

  void WriteManifest() { WriteRunManifest(options.run_dir + "/manifest.json", manifest); }
  void WriteStatus() {
    status.updated_unix_seconds = options.clock->UnixSeconds();
    WriteStatusFile(options.run_dir + "/status.json", status);
  }

  // `rate` in samples per second; the rest of the run is taken to be as fast as what is done.
  void Advance(int64_t done, double seconds, double rate) {
    status.step = shown.step = done;
    status.samples_per_second = shown.samples_per_second = rate;
    shown.eta_seconds =
        seconds / static_cast<double>(done) * static_cast<double>(status.steps - done);
    status.eta_seconds = shown.eta_seconds;
  }
};

RunObserver::RunObserver(Options options) : state_(new State(std::move(options))) {
  state_->WriteManifest();
  state_->WriteStatus();
}

RunObserver::~RunObserver() {
  if (state_->status.state == "done") return;
  // Leaving through an error: whoever watches the run learns it. The error itself is what matters.
  try {
    state_->status.state = "failed";
    state_->WriteStatus();
  } catch (const std::exception&) {
  }
}

void RunObserver::OnStart(int64_t steps) {
  const Options& o = state_->options;
  const TrainConfig& config = *o.config;
  LogInfo("{} on {}: {} samples, {} tables; {} steps of {}; {} {} x {} {} ({}, {})",
          config.model.type, o.splits->train.dataset->directory(), o.splits->train.rows.size(),
          o.splits->train.dataset->schema().categorical.size(), steps, config.training.batch_size,
          o.hosts.size(), o.hosts.size() == 1 ? "worker" : "workers", o.threads,
          o.threads == 1 ? "thread" : "threads", o.backend, o.isa);
  state_->status.state = "running";
  state_->status.steps = state_->shown.steps = steps;
  state_->WriteStatus();
}

void RunObserver::OnStep(int64_t done, double seconds) {
  State& s = *state_;
  const double samples = static_cast<double>(done * s.options.config->training.batch_size);
  s.Advance(done, seconds, samples / seconds);
  // Once there is a loss to show; the last step is the report's to show.
  if (!std::isnan(s.shown.loss) && done < s.shown.steps)
    s.progress.Update(s.shown, s.options.clock->MonotonicSeconds());
  constexpr double kStatusSeconds = 5;
  if (s.options.clock->UnixSeconds() - s.status.updated_unix_seconds > kStatusSeconds)
    s.WriteStatus();
}

void RunObserver::OnReport(const StepReport& report) {
  State& s = *state_;
  std::vector<Scalar> scalars = Scalars("train", report.window);
  scalars.push_back({"train/samples_per_second", report.samples_per_second});
  scalars.push_back({"train/learning_rate_factor", report.learning_rate_factor});
  s.Log(report.step, std::move(scalars));
  s.shown.loss = report.window.LogLoss();
  s.shown.auc = report.window.Auc();
  s.Advance(report.step, report.seconds, report.samples_per_second);
  s.WriteStatus();
  s.progress.Update(s.shown, s.options.clock->MonotonicSeconds());
}

void RunObserver::OnEvaluation(int64_t step, const BinaryMetrics& metrics) {
  state_->Log(step, Scalars("eval", metrics));
  state_->progress.Clear();
  LogInfo(
      "eval at step {}: AUC {:.4f}{}, log loss {:.4f}, normalized entropy {:.4f}, calibration "
      "{:.3f}",
      step, metrics.Auc(), BestReachable(*state_->options.splits, metrics.Auc()), metrics.LogLoss(),
      metrics.NormalizedEntropy(), metrics.Calibration());
}

void RunObserver::OnAdvice(const std::string& advice) {
  state_->progress.Clear();
  LogWarning("{}", advice);
}

void RunObserver::OnDone(const TrainResult& result, const std::string& model_sha256) {
  State& s = *state_;
  s.manifest.model_sha256 = model_sha256;
  s.manifest.steps = result.steps;
  s.WriteManifest();
  s.status.state = "done";
  s.status.step = result.steps;
  s.status.eta_seconds = 0;
  s.WriteStatus();
  s.progress.Clear();
  const double samples = static_cast<double>(result.steps * s.options.config->training.batch_size);
  LogInfo("trained {} steps in {} ({:.1f}k samples/s)", result.steps, DurationText(result.seconds),
          result.seconds > 0 ? samples / result.seconds / 1000 : 0);
  LogInfo("model {}/model sha256 {}", s.options.run_dir, model_sha256);
}

}  // namespace renzan
