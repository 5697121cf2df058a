#pragma once

// The model of the best evaluation so far (training.keep_best), which is a checkpoint. Every rank
// makes the same calls.

#include <cstdint>

#include "renzan/comm/communicator.h"
#include "renzan/run/loop_state.h"
#include "renzan/saving/past_run.h"
#include "renzan/state/model_state.h"

namespace renzan {

// Clears the record of evaluations if the checkpoint of its best model is missing, without which
// the record is useless.
void ResetEvaluationsIfBestIsMissing(const RunDirectories& directories, Communicator& comm,
                                     LoopState* state);

// Loads the best model unless it is the current one, which is at `step`. Returns its step.
int64_t LoadBest(const RunDirectories& directories, const EvaluationRecord& evaluations,
                 int64_t step, ModelState& model, Communicator& comm);

}  // namespace renzan
