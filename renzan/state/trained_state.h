#pragma once

// The view of a model in training that saving has of it.

#include "renzan/quality/finiteness.h"
#include "renzan/state/model_state.h"

namespace renzan {

class TrainedState {
 public:
  virtual ~TrainedState() = default;

  // Awaits the last step. The state after it, in this process's memory; valid until the next step.
  virtual ModelState& Updated() = 0;

  // Over all finished steps: the predictions for this worker's samples, the dense part and its
  // tables.
  virtual const Finiteness& finiteness() const = 0;
};

}  // namespace renzan
