#pragma once

// A model in training, as seen by the code that saves it.

#include "renzan/quality/finiteness.h"
#include "renzan/state/model_state.h"

namespace renzan {

class TrainedState {
 public:
  virtual ~TrainedState() = default;

  // Waits for the last step and returns the state after it, in host memory. Valid until the next
  // step.
  virtual ModelState& Updated() = 0;

  // Whether values were finite in all finished steps: the predictions for this worker's samples,
  // the dense part, and this worker's tables.
  virtual const Finiteness& finiteness() const = 0;
};

}  // namespace renzan
