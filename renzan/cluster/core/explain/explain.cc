#include "renzan/cluster/core/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/core/explain/forecast.h"
#include "renzan/cluster/core/explain/why_it_waits.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

void Estimate(const Snapshot& snapshot, const ScheduleOptions& options, CycleBudget& budget,
              Explanation& explanation) {
  const std::optional<Forecast> forecast =
      ForecastStart(snapshot, explanation.job, options, budget);
  if (!forecast && budget.exhausted())
    explanation.estimate_rests_on = "too many jobs must end first to work it out";
  if (!forecast) return;
  explanation.estimated_start = forecast->start;
  const int known = forecast->ends_awaited - forecast->ends_assumed;
  std::string text = fmt::format("when {} other job{} ended", forecast->ends_awaited,
                                 forecast->ends_awaited == 1 ? " has" : "s have");
  if (forecast->ends_awaited == 0) text = "no other job has to end first";
  if (known > 0)
    text += fmt::format("; {} of them {} an expected end", known, known == 1 ? "has" : "have");
  if (forecast->ends_assumed > 0)
    text += fmt::format(
        "; {} assumed to run for as long as similar jobs; one like no other for an hour, or for as "
        "long again as so far",
        forecast->ends_assumed == 1 ? "one is" : fmt::format("{} are", forecast->ends_assumed));
  explanation.estimate_rests_on = text;
}

std::string WhyWithheld(const Validated& validated) {
  if (!validated.violations.empty())
    return fmt::format(
        "the scheduler's decisions failed validation, so none is carried out: {} (this is a bug: "
        "please report it)",
        validated.violations.front());
  return fmt::format(
      "starting it or making room for it would involve or rest on an inconsistent job or node: {}",
      ListSome(validated.faults));
}

}  // namespace

Explanation Explain(const Snapshot& observed, JobId id, const ExplainOptions& options) {
  const Snapshot snapshot = WithAvoidance(observed);
  const Job* job = snapshot.Find(id);
  CHECK(job != nullptr && job->state == JobState::kPending);
  if (options.cancelled && options.cancelled()) return {.job = id, .why = "cancelled"};
  // Decisions that fail validation are not carried out.
  const Validated validated = Validate(snapshot, Schedule(snapshot, options.scheduling));
  const Decisions& decisions = validated.decisions;
  Explanation explanation{.job = id};
  const auto wait = std::find_if(decisions.waits.begin(), decisions.waits.end(),
                                 [=](const Wait& candidate) { return candidate.job == id; });
  if (wait == decisions.waits.end()) {
    explanation.why = "it starts in the next scheduling cycle";
    explanation.estimated_start = snapshot.now;
    explanation.estimate_rests_on = "there is room for it";
    explanation.queue_position = 1;
    return explanation;
  }
  explanation.reason = wait->reason;
  explanation.queue_position = static_cast<int>(wait - decisions.waits.begin()) + 1;
  if (wait->reason == WaitReason::kWithheld) {
    explanation.why = WhyWithheld(validated);
    return explanation;
  }
  explanation.why = WhyItWaits(snapshot, *wait);
  if (!job->held.empty()) return explanation;  // no change of the cluster starts it
  const int for_changes = options.max_cycles / 2;
  CycleBudget changes(for_changes, options.cancelled);
  explanation.would_start_with =
      ChangesThatStart(snapshot, *wait, options.scheduling, options.rules, changes);
  if (wait->reason == WaitReason::kInfeasible) return explanation;
  CycleBudget estimate(options.max_cycles - for_changes - 1, options.cancelled);
  Estimate(snapshot, options.scheduling, estimate, explanation);
  return explanation;
}

}  // namespace renzan::cluster
