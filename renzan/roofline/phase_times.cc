#include "renzan/roofline/phase_times.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "renzan/roofline/median.h"

namespace renzan {
namespace {

double Seconds(const TraceEvent& event) {
  return static_cast<double>(event.end_ns - event.begin_ns) / 1e9;
}

}  // namespace

StepTimes TimesOfSteps(const Trace& trace) {
  // By thread and time, an outer span before the spans inside it.
  std::vector<TraceEvent> events = trace.events;
  std::sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    return a.end_ns > b.end_ns;
  });
  std::vector<double> steps, others;
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> phases;  // one value per step
  double catching_up = 0;                             // in total
  bool catches_up = false;
  const auto is_catch_up = [](const TraceEvent& event) {
    return std::strcmp(event.name, kCatchUpSpan) == 0;
  };
  const auto add_catch_up = [&](const TraceEvent& event) {
    catches_up = true;
    catching_up += Seconds(event);
  };
  for (size_t i = 0; i < events.size(); ++i) {
    if (is_catch_up(events[i])) add_catch_up(events[i]);
    if (std::strcmp(events[i].name, "step") != 0) continue;
    const TraceEvent& step = events[i];
    steps.push_back(Seconds(step));
    double other = Seconds(step);
    int64_t inside_until = step.begin_ns;
    double* phase = &other;
    for (; i + 1 < events.size() && events[i + 1].thread == step.thread &&
           events[i + 1].end_ns <= step.end_ns;
         ++i) {
      const TraceEvent& event = events[i + 1];
      const bool nested = event.begin_ns < inside_until;
      if (is_catch_up(event)) {
        add_catch_up(event);
        steps.back() -= Seconds(event);
        *(nested ? phase : &other) -= Seconds(event);
        continue;
      }
      if (nested) continue;  // in another phase
      inside_until = event.end_ns;
      std::vector<double>& of_steps = phases[event.name];
      if (of_steps.empty()) order.push_back(event.name);
      of_steps.resize(steps.size());  // 0 in steps without this phase
      phase = &of_steps.back();
      *phase += Seconds(event);
      other -= Seconds(event);
    }
    others.push_back(other);
  }
  const double mean = steps.empty() ? 0 : catching_up / static_cast<double>(steps.size());
  StepTimes times{.step = Median(steps) + mean, .phases = {}};
  for (const std::string& name : order) {
    phases[name].resize(steps.size());
    times.phases.push_back({name, Median(phases[name])});
  }
  if (catches_up) times.phases.push_back({kCatchUpSpan, mean});
  times.phases.push_back({"other", Median(others)});
  return times;
}

}  // namespace renzan
