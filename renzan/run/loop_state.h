#pragma once

// The state of the training loop apart from the model: the step and the metric accumulators. It is
// saved with every checkpoint, so that a resumed run reports the same as an uninterrupted one. Not
// thread-safe.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/comm/wire_range.h"
#include "renzan/model/metrics.h"
#include "renzan/quality/divergence.h"
#include "renzan/quality/evaluation_record.h"
#include "renzan/quality/plateau.h"
#include "renzan/saving/progress_tensors.h"

namespace renzan {

struct LoopState {
  int64_t step = 0;                   // steps done
  std::vector<OutputMetrics> window;  // [tasks, threads]: since the last report
  WireRange gradient_range;           // this worker's, since the last report
  // By task; the same on every worker.
  std::vector<DivergenceWatch> watches = std::vector<DivergenceWatch>(1);
  double seconds = 0;            // spent training
  bool evaluation_due = false;   // the evaluation after `step` is not finished
  EvaluationRecord evaluations;  // if anything depends on them; the same on every worker
  // `evaluations` without the one at the end of the run, if a longer run would not evaluate there.
  EvaluationRecord scheduled_evaluations;
  // The same of what evaluations do to the learning rates, and what that was at the best
  // evaluation.
  Plateau plateau, scheduled_plateau, best_plateau;
};

// The metrics of a task, of all its threads.
std::span<OutputMetrics> WindowOf(LoopState* state, size_t task);

// Everything but the step. Every rank calls it; the result is the same on all.
ProgressTensors SaveProgress(Communicator& comm, const LoopState& state);

// `state->window` already has its size. Missing tensors leave the state unchanged. Throws Error
// kData.
void RestoreProgress(const ProgressTensors& tensors, int rank, LoopState* state);

// What evaluations have found only. It is saved with a model too, so that a run that resumes from
// the model continues with it.
ProgressTensors SaveEvaluations(const EvaluationRecord& evaluations, const Plateau& plateau);

// Throws kConfig, as Plateau::Restore() does, if the tensors are of other evaluations than
// `plateau`, which has seen none.
void CheckSameEvaluations(const ProgressTensors& tensors, Plateau plateau);

// Whether `record`, which has seen none, could go on with the evaluations of the tensors, if they
// have any.
bool CanContinue(const ProgressTensors& tensors, EvaluationRecord record);

// Whether a run that resumes from these tensors starts with the evaluation of its step.
bool EvaluationDue(const ProgressTensors& tensors);

}  // namespace renzan
