#pragma once

// The training loop of one worker: reads batches, runs steps, reports and evaluates periodically,
// and gives advice when the model does not learn. It can be stopped after every step. Every rank
// runs the same loop; only rank 0 has an observer.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/embedding/wire_error.h"
#include "renzan/infer/evaluate.h"
#include "renzan/infer/rank_items.h"
#include "renzan/model/metrics.h"
#include "renzan/run/loop_state.h"
#include "renzan/run/splits.h"
#include "renzan/step/step.h"

namespace renzan {

struct StepReport {
  int64_t step = 0, steps = 0;         // done, and the total
  std::vector<OutputMetrics> windows;  // by task, since the last report
  WireRange gradient_range;  // since the last report; no values unless comm.backward is fp16
  // By table, of the last step; none unless comm.guard is set and comm.backward rounds.
  std::vector<WireError> gradient_errors;
  double samples_per_second = 0;  // since the last report, without evaluations
  double learning_rate_factor = 1;
  double gradient_norm = 0;  // of the last step, before clipping; NaN without clipping
  double seconds = 0;        // spent training so far
};

// Displays and records training on rank 0.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // `first`: the state at which this process starts.
  virtual void OnStart(const LoopState& first, int64_t steps) = 0;
  // After every step: the number done, and the seconds spent training.
  virtual void OnStep(int64_t done, double seconds) = 0;
  virtual void OnReport(const StepReport& report) = 0;
  // `verdict`: how it compares with the best evaluation so far; empty if nothing depends on it.
  // `evaluations`: of `outputs`.
  virtual void OnEvaluation(int64_t step, std::span<const EvaluatedOutput> outputs,
                            std::span<const Evaluation> evaluations,
                            const std::string& verdict) = 0;
  // The learning rates are this share of the schedule's from here on, after an evaluation.
  virtual void OnPlateau(double factor) = 0;
  virtual void OnAdvice(const std::string& advice) = 0;
};

// The number of steps to train on so many rows. Throws kConfig when there are fewer samples than
// one batch.
int64_t NumSteps(const TrainConfig& config, int64_t rows);

// Throws kConfig unless it is clear which of the model's outputs decides about early stopping,
// keep_best and plateaus of the learning rate, if anything does.
void CheckWatchedOutput(const TrainConfig& config, std::span<const ModelOutput> outputs);

// Sets the metrics by which evaluations are compared, where they are not set. Throws kConfig for
// one that the output that decides does not have.
void ChooseMetrics(std::span<const ModelOutput> outputs, const ModelOptions& model,
                   TrainConfig* config);

// Whether to evaluate after `done` steps, apart from the evaluation at the end.
bool IsEvaluationStep(const TrainingConfig& config, int64_t steps_per_epoch, int64_t done);

struct TrainCallbacks {
  TrainObserver* observer = nullptr;  // null on ranks other than 0
  // Called with the number of steps done: at the start, after each step and during evaluations.
  std::function<bool(int64_t done)> should_stop;
  // Called after each step.
  std::function<void()> after_step;
  // Called when the evaluation at `step` shows that the current model is the best so far.
  std::function<void(int64_t step)> keep_best;
};

// Trains from state->step to `steps` and evaluates, with `ranking` and `groups` unless they are
// null, or until early stopping. Returns false if `should_stop` ended it before that. Throws
// kSoftware on all ranks when the model or the predictions of an evaluation are not finite. The
// model is checked after the last step at the latest.
bool Train(const TrainConfig& config, int64_t steps, const Split& train,
           const std::optional<Split>& eval, Step& model, Communicator& comm, const Clock& clock,
           const TrainCallbacks& callbacks, LoopState* state, const ItemRanking* ranking = nullptr,
           const RowGroups* groups = nullptr);

}  // namespace renzan
