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

// Plans for first, 2 · first, 4 · first, ... up to last workers, which topology_of() describes;
// `input.topology` is not used. If there are more workers than virtual workers, the number of
// virtual workers is raised to the next power of two: such a run rounds differently. Throws kConfig
// if they do not divide the batch.
std::vector<SweepPoint> SweepWorkers(PlanInput input, int first, int last,
                                     const std::function<Topology(int workers)>& topology_of);

// A self-contained SVG: samples per second over workers, both axes logarithmic, with a line for
// perfect scaling.
std::string DrawSweep(const std::vector<SweepPoint>& points, const std::string& title);

}  // namespace renzan
