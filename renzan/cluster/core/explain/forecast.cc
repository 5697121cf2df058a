#include "renzan/cluster/core/explain/forecast.h"

#include <algorithm>
#include <vector>

#include "renzan/cluster/core/explain/submissions.h"

namespace renzan::cluster {

// If what happens is like one of nine futures, then it is as likely to come before the first of
// them, or after the last, as between any two. So it comes before the fifth in half of all cases,
// and before the last in nine of ten.
Forecast ForecastStart(const Snapshot& snapshot, JobId job, const ScheduleOptions& options,
                       CycleBudget& budget) {
  Forecast forecast;
  std::vector<Submissions> submissions;
  for (size_t at = 0; at < kLately.size(); ++at) {
    submissions.emplace_back(snapshot, kLately[at]);
    forecast.submissions_per_hour[at] = submissions.back().per_hour();
  }
  struct Case {
    TimeMs start;
    Ends ends;
  };
  std::vector<Case> cases;
  for (int number = 0; number < kFutures; ++number) {
    Future future(snapshot, job, options, submissions[number % kLately.size()], number);
    const Future::Outcome outcome = future.Run(budget, budget.left() / (kFutures - number));
    forecast.out_of_cycles |= outcome == Future::Outcome::kOutOfCycles;
    cases.push_back({future.start(), future.ends()});
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.start < b.start; });
  const Case& median = cases[kFutures / 2];
  forecast.ends = median.ends;
  if (median.start != kNever) forecast.median = median.start;
  if (cases.back().start != kNever) forecast.p90 = cases.back().start;
  return forecast;
}

}  // namespace renzan::cluster
