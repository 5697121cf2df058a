#include "renzan/planning/plan_sweep.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/svg.h"

namespace renzan {

std::vector<SweepPoint> SweepWorkers(PlanInput input, int first, int last,
                                     const std::function<Topology(int workers)>& topology_of) {
  std::vector<SweepPoint> points;
  input.config.sharding.plan.clear();  // a plan file is for one number of workers
  for (int workers = first; workers <= last; workers *= 2) {
    input.topology = topology_of(workers);
    int& virtual_workers = input.config.numerics.virtual_workers;
    virtual_workers =
        std::max(virtual_workers, static_cast<int>(std::bit_ceil(static_cast<unsigned>(workers))));
    if (input.config.training.batch_size % virtual_workers != 0)
      Fail(ErrorCode::kConfig,
           "training.batch_size: {} cannot be divided by the {} that {} would "
           "need",
           Counted(input.config.training.batch_size, "sample"),
           Counted(virtual_workers, "virtual worker"), Counted(workers, "worker"));
    const PlannedRun planned = PlanRun(input);
    const double rate = static_cast<double>(planned.run.batch) / planned.step.total();
    const double per_worker = rate / workers;
    const double of_first =
        points.empty() ? per_worker : points[0].samples_per_second / points[0].workers;
    points.push_back({.workers = workers,
                      .hosts = static_cast<int>(input.topology.hosts.size()),
                      .samples_per_second = rate,
                      .efficiency = per_worker / of_first,
                      .step_seconds = planned.step.total(),
                      .bottleneck = BottleneckOf(planned.step),
                      .memory_bytes = planned.most_memory_bytes(),
                      .fits = planned.fits()});
  }
  return points;
}

std::string DrawSweep(const std::vector<SweepPoint>& points, const std::string& title) {
  constexpr int kWidth = 800, kHeight = 480;
  constexpr double kLeft = 90, kRight = 770, kTop = 50, kBottom = 420;
  const SweepPoint &first = points.front(), &last = points.back();
  const double perfect = first.samples_per_second * last.workers / first.workers;
  const double low = std::log2(first.samples_per_second) - 0.5;
  double high = std::log2(perfect) + 0.5;
  for (const SweepPoint& point : points)
    high = std::max(high, std::log2(point.samples_per_second) + 0.5);
  const double octaves =
      std::max(1.0, std::log2(static_cast<double>(last.workers) / first.workers));
  const auto x = [&](double workers) {
    return kLeft + (kRight - kLeft) * std::log2(workers / first.workers) / octaves;
  };
  const auto y = [&](double rate) {
    return kBottom - (kBottom - kTop) * (std::log2(rate) - low) / (high - low);
  };

  Svg svg(kWidth, kHeight);
  svg.Text(kLeft, 24, "start", title, 16);
  svg.Line(kLeft, kBottom, kRight, kBottom, "#222222", 1);
  svg.Line(kLeft, kTop, kLeft, kBottom, "#222222", 1);
  svg.Line(x(first.workers), y(first.samples_per_second), x(last.workers), y(perfect), "#bbbbbb",
           1);
  svg.Text(x(last.workers), y(perfect) - 6, "end", "perfect scaling");
  std::vector<SvgPoint> line;
  for (const SweepPoint& point : points)
    line.push_back({x(point.workers), y(point.samples_per_second)});
  svg.Polyline(line, "#4477aa", 2);
  for (const SweepPoint& point : points) {
    const double at = x(point.workers), height = y(point.samples_per_second);
    svg.Circle(at, height, 4, point.fits ? "#4477aa" : "#cc3311");
    svg.Text(at, height + 18, "middle", fmt::format("{:.0f} %", 100 * point.efficiency), 11);
    svg.Line(at, kBottom, at, kBottom + 4, "#222222", 1);
    svg.Text(at, kBottom + 18, "middle", std::to_string(point.workers));
    svg.Text(kLeft - 6, height + 4, "end", fmt::format("{:.1f}k", point.samples_per_second / 1e3));
  }
  svg.Text((kLeft + kRight) / 2, kBottom + 40, "middle",
           "workers; samples per second as predicted, and the efficiency per worker (red: does not "
           "fit into memory)");
  return svg.Finish();
}

}  // namespace renzan
