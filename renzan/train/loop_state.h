#pragma once

// What the training loop carries from step to step beside the model: the step and the accumulators
// of metrics. It is saved with every checkpoint, so that a resumed run reports what an undisturbed
// one does. Not thread-safe.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/comm/wire_range.h"
#include "renzan/model/metrics.h"
#include "renzan/train/quality/divergence.h"
#include "renzan/train/quality/evaluation_record.h"

namespace renzan {

struct LoopState {
  int64_t step = 0;                   // steps done
  std::vector<BinaryMetrics> window;  // [threads]: since the last report
  WireRange gradient_range;           // this worker's, since the last report
  DivergenceWatch watch;              // the same on every worker
  double seconds = 0;                 // spent training
  bool evaluation_due = false;        // after `step`, and not finished
  EvaluationRecord evaluations;       // where they decide something; the same on every worker
};

// Integers by tensor name, as docs/formats/checkpoint.md describes them.
using ProgressTensors = std::map<std::string, std::vector<int64_t>>;

// Everything but the step. Every rank calls it alike; the result is the same on all.
ProgressTensors SaveProgress(Communicator& comm, const LoopState& state);

// `state` has its windows. Tensors that are missing leave it as it is. Throws Error kData.
void RestoreProgress(const ProgressTensors& tensors, int rank, LoopState* state);

// The record of evaluations alone, which a saved model carries too: a run that resumes from it goes
// on with what its evaluations have said.
ProgressTensors SaveEvaluations(const EvaluationRecord& evaluations);

// Whether a run that resumes from them begins with the evaluation of its step.
bool EvaluationDue(const ProgressTensors& tensors);

}  // namespace renzan
