#include "renzan/train/loop.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/data/batch_loader.h"
#include "renzan/train/divergence.h"
#include "renzan/train/schedule.h"

namespace renzan {
namespace {

// Takes what the threads gathered since the last call, over all workers.
BinaryMetrics TakeWindow(Communicator& comm, std::vector<BinaryMetrics>* per_thread) {
  BinaryMetrics mine;
  for (BinaryMetrics& metrics : *per_thread) {
    mine.Merge(metrics);
    metrics = BinaryMetrics();
  }
  return MergeMetrics(comm, mine);
}

}  // namespace

int64_t NumSteps(const TrainingConfig& config, const Split& train) {
  const int64_t per_epoch = StepsPerEpoch(train.rows.size(), config.batch_size);
  const int64_t steps =
      static_cast<int64_t>(std::llround(config.epochs * static_cast<double>(per_epoch)));
  return config.max_steps < 0 ? steps : std::min(steps, config.max_steps);
}

TrainResult Train(const TrainConfig& config, int64_t steps, const Split& train,
                  const std::optional<Split>& eval, HybridModel& model, Communicator& comm,
                  int num_threads, const Clock& clock, TrainObserver* observer) {
  const TrainingConfig& t = config.training;
  BatchLoader loader(*train.dataset, {.seed = config.seed,
                                      .row_begin = train.rows.begin,
                                      .row_end = train.rows.end,
                                      .global_batch = t.batch_size,
                                      .slice_begin = model.slice_begin(),
                                      .slice_end = model.slice_end(),
                                      .first_step = 0,
                                      .num_steps = steps,
                                      .shuffle = {.enabled = config.data.shuffle}});
  const auto evaluate = [&](int64_t step) {
    if (!eval) return;
    const BinaryMetrics metrics = Evaluate(model, comm, *eval->dataset, eval->rows, t.batch_size);
    if (observer) observer->OnEvaluation(step, metrics);
  };

  TrainResult result{.steps = steps};
  std::vector<BinaryMetrics> metrics(static_cast<size_t>(num_threads));
  DivergenceWatch watch;
  if (observer) observer->OnStart(steps);
  double window_start = clock.MonotonicSeconds();
  int64_t window_steps = 0;
  for (int64_t step = 0; step < steps; ++step) {
    model.Step(loader.Next(), step, metrics);
    ++window_steps;
    const int64_t done = step + 1;
    const bool report = done % t.log_every == 0 || done == steps;
    const bool evaluation = t.eval_every > 0 && done % t.eval_every == 0 && done != steps;
    if (observer) observer->OnStep(done, result.seconds + clock.MonotonicSeconds() - window_start);
    if (!report && !evaluation) continue;
    const double now = clock.MonotonicSeconds();
    const double seconds = std::max(now - window_start, 1e-9);
    result.seconds += seconds;
    StepReport shown{
        .step = done,
        .steps = steps,
        .window = TakeWindow(comm, &metrics),
        .samples_per_second = static_cast<double>(window_steps * t.batch_size) / seconds,
        .learning_rate_factor = LearningRateFactor(config.optimizer.schedule, step),
        .seconds = result.seconds};
    if (observer) observer->OnReport(shown);
    const std::optional<std::string> advice = watch.Observe(done, shown.window);
    if (advice && observer) observer->OnAdvice(*advice);
    if (evaluation) evaluate(done);
    window_start = clock.MonotonicSeconds();
    window_steps = 0;
  }
  evaluate(steps);
  return result;
}

}  // namespace renzan
