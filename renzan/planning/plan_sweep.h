#pragma once

// How a run would scale: the same model and global batch planned for growing numbers of workers.

#include <functional>
#include <string>
#include <vector>

#include "renzan/planning/plan_report.h"

namespace renzan {

struct SweepPoint {
  int workers = 0, hosts = 0;
  double samples_per_second = 0;
  double efficiency = 0;  // samples per second and worker, relative to the first point
  double step_seconds = 0;
  std::string bottleneck;  // the phase that takes most time
  double memory_bytes = 0;
  bool fits = false;
};

// For first, 2 · first, 4 · first, ... up to last workers, which topology_of() describes.
// `input.topology` is not used. Where there are more workers than virtual workers, there are as
// many virtual workers as that: such a run differs in rounding. Throws kConfig if they do not
// divide the batch.
std::vector<SweepPoint> SweepWorkers(PlanInput input, int first, int last,
                                     const std::function<Topology(int workers)>& topology_of);

// A self-contained SVG: samples per second over workers, both logarithmic, with the line of perfect
// scaling.
std::string DrawSweep(const std::vector<SweepPoint>& points, const std::string& title);

}  // namespace renzan
