#pragma once

// The training loop of one worker: batches in, steps, a report every so often, evaluations, and
// advice when nothing is learnt; after every step somebody may ask it to stop. Every rank runs it
// alike; only rank 0 has an observer.

#include <cstdint>
#include <functional>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/data/dataset.h"
#include "renzan/model/metrics.h"
#include "renzan/train/config.h"
#include "renzan/train/hybrid_model.h"
#include "renzan/train/loop_state.h"
#include "renzan/train/quality/evaluate.h"

namespace renzan {

struct StepReport {
  int64_t step = 0, steps = 0;    // done, of how many
  BinaryMetrics window;           // since the last report
  WireRange gradient_range;       // since the last report; no values unless comm.backward is fp16
  double samples_per_second = 0;  // since the last report
  double learning_rate_factor = 1;
  double gradient_norm = 0;  // of the last step, before clipping; NaN without clipping
  double seconds = 0;        // spent training so far
};

// What rank 0 shows and records.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // `first` is where this process begins.
  virtual void OnStart(const LoopState& first, int64_t steps) = 0;
  // After every step: how many are done, and the seconds spent in them.
  virtual void OnStep(int64_t done, double seconds) = 0;
  virtual void OnReport(const StepReport& report) = 0;
  // `verdict`: what it means for early stopping and the best model, or empty.
  virtual void OnEvaluation(int64_t step, const BinaryMetrics& metrics,
                            const std::string& verdict) = 0;
  virtual void OnAdvice(const std::string& advice) = 0;
};

struct Split {
  const Dataset* dataset = nullptr;
  RowRange rows;
};

// Steps that the configuration asks for. Throws kConfig when there are fewer samples than one
// batch.
int64_t NumSteps(const TrainingConfig& config, const Split& train);

// Whether the model is evaluated after `done` steps on the way; it always is at the end.
bool IsEvaluationStep(const TrainingConfig& config, int64_t steps_per_epoch, int64_t done);

struct TrainCallbacks {
  TrainObserver* observer = nullptr;  // null on ranks other than 0
  // Called with the number of steps done at the beginning, after each and during evaluations.
  std::function<bool(int64_t done)> should_stop;
  // The model as it is now, after the evaluation of this step, is the best so far.
  std::function<void(int64_t step)> keep_best;
};

// Trains from state->step until `steps` are done, and evaluates then, or until early stopping;
// false when it stopped before that because `should_stop` said so. Throws kSoftware on all ranks
// when the model is found not to be finite, at the latest after the last step, or when an
// evaluation's predictions are not.
bool Train(const TrainConfig& config, int64_t steps, const Split& train,
           const std::optional<Split>& eval, HybridModel& model, Communicator& comm,
           const Clock& clock, const TrainCallbacks& callbacks, LoopState* state);

}  // namespace renzan
