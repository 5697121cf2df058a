#pragma once

// How long each phase of a training step took, from a trace.

#include <string>
#include <vector>

#include "renzan/base/trace.h"

namespace renzan {

struct PhaseTime {
  std::string name;
  double seconds = 0;  // median over the steps; of "catch up", the mean
};

struct StepTimes {
  double step = 0;  // seconds of a whole step: the median of all else, and the mean of "catch up"
  std::vector<PhaseTime> phases;  // in the order in which they begin; the last is "other"
};

// The phases are the spans directly inside a span named "step", on the same thread. Spans of
// kCatchUpSpan are a phase of their own wherever they are, also outside steps: some steps have much
// of it and most have little, so its mean counts, and other phases and steps are taken without it.
StepTimes TimesOfSteps(const Trace& trace);

}  // namespace renzan
