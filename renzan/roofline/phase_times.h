#pragma once

// How long each phase of a training step took, from a trace.

#include <string>
#include <vector>

#include "renzan/base/trace.h"

namespace renzan {

struct PhaseTime {
  std::string name;
  double seconds = 0;  // median over the steps
};

struct StepTimes {
  double step = 0;                // seconds of a whole step, median
  std::vector<PhaseTime> phases;  // in the order in which they begin; the last is "other"
};

// The phases are the spans directly inside a span named "step", on the same thread.
StepTimes TimesOfSteps(const Trace& trace);

}  // namespace renzan
