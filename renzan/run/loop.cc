#include "renzan/run/loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/quality/finiteness.h"
#include "renzan/quality/gradient_error.h"
#include "renzan/quality/gradient_range.h"
#include "renzan/run_spec/schedule.h"

namespace renzan {
namespace {

// The metrics since the last call, over all threads and workers. Resets them.
BinaryMetrics TakeWindow(Communicator& comm, std::vector<BinaryMetrics>* per_thread) {
  BinaryMetrics mine;
  for (BinaryMetrics& metrics : *per_thread) {
    mine.Merge(metrics);
    metrics = BinaryMetrics();
  }
  return MergeMetrics(comm, mine);
}

// Even a model with finite parameters may give infinite predictions.
void FailUnlessFinite(const BinaryMetrics& evaluation, int64_t step) {
  if (evaluation.non_finite > 0)
    Fail(ErrorCode::kSoftware,
         "evaluation at step {}: {} of {} predictions are NaN or infinite, so the model is not "
         "saved; lower the learning rates (try a tenth), or look for values in data.eval that are "
         "far outside the range of data.train",
         step, evaluation.non_finite, evaluation.non_finite + evaluation.count);
}

// Whether the training data is known to hold one class only.
bool HasOneClass(const Split& train) { return train.dataset->manifest().has_one_class(); }

std::string OneClassAdvice(const Split& train, const char* which) {
  return fmt::format(
      "all labels '{}' {} the same, so the model can learn nothing but a constant: check the rule "
      "of "
      "the label with which {} was imported, and data.train.rows",
      train.dataset->schema().label, which, train.dataset->directory());
}

}  // namespace

int64_t NumSteps(const TrainingConfig& config, const Split& train) {
  const int64_t per_epoch = StepsPerEpoch(train.rows.size(), config.batch_size);
  const int64_t steps =
      static_cast<int64_t>(std::llround(config.epochs * static_cast<double>(per_epoch)));
  return config.max_steps < 0 ? steps : std::min(steps, config.max_steps);
}

bool IsEvaluationStep(const TrainingConfig& config, int64_t steps_per_epoch, int64_t done) {
  if (config.eval_every > 0) return done % config.eval_every == 0;
  if (config.eval_every_epochs <= 0) return false;
  // The step nearest to a multiple of the period.
  const double period =
      std::max(1.0, config.eval_every_epochs * static_cast<double>(steps_per_epoch));
  const double multiple = std::round(static_cast<double>(done) / period);
  return multiple > 0 && std::llround(multiple * period) == done;
}

bool Train(const TrainConfig& config, int64_t steps, const Split& train,
           const std::optional<Split>& eval, Step& model, Communicator& comm, const Clock& clock,
           const TrainCallbacks& callbacks, LoopState* state) {
  const TrainingConfig& t = config.training;
  const int64_t steps_per_epoch = StepsPerEpoch(train.rows.size(), t.batch_size);
  TrainObserver* const observer = callbacks.observer;
  const auto& should_stop = callbacks.should_stop;
  BatchLoader loader(*train.dataset, {.seed = config.seed,
                                      .row_begin = train.rows.begin,
                                      .row_end = train.rows.end,
                                      .global_batch = t.batch_size,
                                      .slice_begin = model.slice_begin(),
                                      .slice_end = model.slice_end(),
                                      .first_step = state->step,
                                      .num_steps = steps - state->step,
                                      .shuffle = {.enabled = config.data.shuffle},
                                      .readers = model.batch_readers()});
  // Returns false if it was stopped; the resumed run then repeats the evaluation.
  const auto evaluate = [&] {
    state->evaluation_due = true;
    if (eval) {
      const std::optional<BinaryMetrics> metrics =
          Evaluate(model, comm, *eval->dataset, eval->rows, t.batch_size,
                   [&] { return should_stop(state->step); });
      if (!metrics) return false;
      FailUnlessFinite(*metrics, state->step);
      const bool best = t.watches_evaluations() &&
                        state->evaluations.Observe(t.early_stopping, state->step, *metrics);
      if (IsEvaluationStep(t, steps_per_epoch, state->step))
        state->scheduled_evaluations = state->evaluations;
      if (observer)
        observer->OnEvaluation(state->step, *metrics,
                               state->evaluations.Describe(t.early_stopping));
      state->evaluation_due = false;
      // The model of the last step is saved at the end anyway.
      if (best && t.keep_best && state->step < steps) callbacks.keep_best(state->step);
    }
    state->evaluation_due = false;
    return true;
  };

  state->scheduled_evaluations = state->evaluations;
  if (observer) observer->OnStart(*state, steps);
  if (observer && HasOneClass(train)) observer->OnAdvice(OneClassAdvice(train, "are"));
  const bool sees_all = state->step == 0;
  int64_t samples = 0, positives = 0;  // seen by this process
  if (should_stop(state->step)) return false;
  if (state->evaluation_due && state->step < steps && !evaluate()) return false;
  // The run may have resumed at its best step, whose checkpoint must then be kept.
  if (t.keep_best && state->evaluations.best_step() == state->step && state->step < steps)
    callbacks.keep_best(state->step);
  const auto stops_early = [&] { return state->evaluations.StopsEarly(t.early_stopping); };
  const auto next_batch = [&] {
    const TraceSpan span("wait for batch");
    return &loader.Next();
  };
  const Batch* batch = state->step < steps && !stops_early() ? next_batch() : nullptr;
  double window_start = clock.MonotonicSeconds();
  int64_t window_steps = 0;
  bool advised_on_range = false, advised_on_error = false;
  const bool guards = config.comm.guard && config.comm.backward != "fp32";
  while (state->step < steps && !stops_early()) {
    const Batch* const next = state->step + 1 < steps ? next_batch() : nullptr;
    const bool report = (state->step + 1) % t.log_every == 0 || state->step + 1 == steps;
    model.Run({.slice = *batch,
               .step = state->step,
               .metrics = state->window,
               .next = next,
               .measure_gradients = guards && report});
    batch = next;
    if (callbacks.after_step) callbacks.after_step();
    state->gradient_range.Add(model.TakeGradientRange());
    ++window_steps;
    const int64_t done = ++state->step;
    const bool evaluation = IsEvaluationStep(t, steps_per_epoch, done) && done != steps;
    if (observer) observer->OnStep(done, state->seconds + clock.MonotonicSeconds() - window_start);
    if (report || evaluation) {
      model.Await();
      CheckFinite(comm, model.finiteness());
      const double now = clock.MonotonicSeconds();
      const double seconds = std::max(now - window_start, 1e-9);
      state->seconds += seconds;
      StepReport shown{
          .step = done,
          .steps = steps,
          .window = TakeWindow(comm, &state->window),
          .gradient_range = MergeRanges(comm, std::exchange(state->gradient_range, {})),
          .samples_per_second = static_cast<double>(window_steps * t.batch_size) / seconds,
          .learning_rate_factor = LearningRateFactor(config.optimizer.schedule, done - 1),
          .gradient_norm = model.gradient_norm(),
          .seconds = state->seconds};
      samples += shown.window.count;
      positives += shown.window.positives;
      if (guards && report)
        shown.gradient_errors =
            MergeErrors(comm, model.spec().numerics.virtual_workers, model.GradientErrors());
      if (observer) observer->OnReport(shown);
      const std::optional<std::string> advice = state->watch.Observe(done, shown.window);
      if (advice && observer) observer->OnAdvice(*advice);
      if (observer && !advised_on_range) {
        const auto range_advice =
            GradientRangeAdvice(shown.gradient_range, model.spec().numerics.backward_scale);
        if (range_advice) observer->OnAdvice(*range_advice);
        advised_on_range = range_advice.has_value();
      }
      if (observer && !advised_on_error) {
        const auto worst = WorstOf(shown.gradient_errors);
        const auto error_advice = worst
                                      ? GradientErrorAdvice(model.spec().tables[worst->table].name,
                                                            worst->error_to_noise, config.comm)
                                      : std::nullopt;
        if (error_advice) observer->OnAdvice(*error_advice);
        advised_on_error = error_advice.has_value();
      }
      const double evaluation_start = clock.MonotonicSeconds();
      if (evaluation && !evaluate()) return false;
      // Reporting takes time from training and counts; evaluating does not.
      window_start = now + clock.MonotonicSeconds() - evaluation_start;
      window_steps = 0;
    }
    state->evaluation_due = done == steps;  // a run that resumes here starts with it
    if (should_stop(done)) return false;
  }
  const bool saw_one_class = sees_all && samples > 0 && (positives == 0 || positives == samples);
  if (observer && (saw_one_class || HasOneClass(train)))
    observer->OnAdvice(OneClassAdvice(train, "that were trained on were"));
  return state->step < steps || evaluate();
}

}  // namespace renzan
