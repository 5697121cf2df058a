#include "renzan/cluster/core/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/explain/ahead.h"
#include "renzan/cluster/core/explain/forecast.h"
#include "renzan/cluster/core/explain/why_it_waits.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

// "2 by the run times of similar jobs"
std::string BasisOf(const Ends& ends) {
  std::vector<std::string> basis;
  if (ends.expected > 0)
    basis.push_back(fmt::format("{} by progress reports or timeouts", ends.expected));
  if (const int learned = ends.all - ends.expected - ends.unlike; learned > 0)
    basis.push_back(fmt::format(
        "{} by the run times of ended jobs like them that ran for at least as long", learned));
  if (ends.unlike > 0)
    basis.push_back(fmt::format(
        "{} submitted before {} had ended to learn from (half of such jobs are assumed to run "
        "for an hour, or for as long again as so far)",
        ends.unlike, Counted(RunTimes::kLeastJobs, "job")));
  return fmt::format("{}", fmt::join(basis, ", "));
}

std::string RestsOn(const Forecast& forecast) {
  std::string text = fmt::format("{} simulated futures", kFutures);
  const auto [least, most] = std::minmax_element(forecast.submissions_per_hour.begin(),
                                                 forecast.submissions_per_hour.end());
  if (*most > 0)
    text += fmt::format(
        " with {:.2g} to {:.2g} submissions per hour, as in the last hour, 4 hours "
        "and day",
        *least, *most);
  if (forecast.ends.all == 0) return text + "; in the middle one no other job ends first";
  return text + fmt::format("; in the middle one it starts after the end of {}: {}",
                            Counted(forecast.ends.all, "other job"), BasisOf(forecast.ends));
}

// Whether it cannot start before an operator restores a node, or one passes its health check.
bool NeedsNodesOutOfService(Snapshot snapshot, const Job& job) {
  for (Node& node : snapshot.nodes)
    if (node.state == NodeState::kCordoned && node.until != kNever) node.state = NodeState::kReady;
  return !WhyInfeasible(InService(std::move(snapshot)), job).empty();
}

void Estimate(const Snapshot& snapshot, const ScheduleOptions& options, CycleBudget& budget,
              Explanation& explanation) {
  const Forecast forecast = ForecastStart(snapshot, explanation.job, options, budget);
  explanation.estimated_start = forecast.median;
  explanation.estimated_start_p90 = forecast.p90;
  if (forecast.median)
    explanation.estimate_rests_on = RestsOn(forecast);
  else if (forecast.out_of_cycles)
    explanation.estimate_rests_on = "too many jobs must end first to work it out";
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
    explanation.estimated_start = explanation.estimated_start_p90 = snapshot.now;
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
  if (job->held.empty()) explanation.ahead = AheadByFairShare(snapshot, *job, options.scheduling);
  if (!job->held.empty()) return explanation;  // no change of the cluster starts it
  const int for_changes = options.max_cycles / 2;
  CycleBudget changes(for_changes, options.cancelled);
  explanation.would_start_with =
      ChangesThatStart(snapshot, *wait, options.scheduling, options.rules, changes);
  if (wait->reason == WaitReason::kInfeasible) return explanation;
  if (NeedsNodesOutOfService(snapshot, *job)) {
    explanation.estimate_rests_on = "nodes that are out of service must return first";
    return explanation;
  }
  CycleBudget estimate(options.max_cycles - 1 - (for_changes - changes.left()), options.cancelled);
  Estimate(snapshot, options.scheduling, estimate, explanation);
  return explanation;
}

}  // namespace renzan::cluster
