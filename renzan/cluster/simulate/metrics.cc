#include "renzan/cluster/simulate/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace renzan::cluster::simulate {
namespace {

constexpr double kMs = 1e-3;

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::vector<Metrics::SizeClass> BySize(const SimulationResult& result) {
  std::vector<Metrics::SizeClass> classes;
  for (const SizeRange& range : kSizeRanges) {
    std::vector<double> waiting, completion;
    for (const JobRecord& job : result.jobs) {
      if (!job.end || !range.Contains(job.gpus)) continue;
      waiting.push_back(static_cast<double>(job.waited_ms) * kMs);
      completion.push_back(static_cast<double>(*job.end - job.submitted) * kMs);
    }
    if (range.most == 0 && waiting.empty()) continue;
    classes.push_back({range.name, Summarize(waiting), Summarize(completion)});
  }
  return classes;
}

double RepeatedShare(const JobRecord& job) {
  const double repeated = static_cast<double>(job.lost + job.overhead);
  return Ratio(repeated, repeated + static_cast<double>(job.useful));
}

void SumJobs(const SimulationResult& result, Metrics& metrics) {
  std::vector<double> completion, waiting;
  TimeMs longest = 0;
  for (const JobRecord& job : result.jobs) {
    metrics.preemptions += job.preemptions;
    metrics.drains += job.drains;
    metrics.node_failures += job.node_failures;
    metrics.resizes += job.resizes;
    metrics.failures += job.failures;
    metrics.failed_jobs += job.failed;
    metrics.most_preemptions_of_a_job =
        std::max<int64_t>(metrics.most_preemptions_of_a_job, job.preemptions);
    const double gpus = static_cast<double>(job.gpus_per_worker) * kMs;
    metrics.useful_gpu_s += gpus * static_cast<double>(job.useful);
    metrics.lost_gpu_s += gpus * static_cast<double>(job.lost);
    metrics.overhead_gpu_s += gpus * static_cast<double>(job.overhead);
    if (!job.end) continue;
    if (job.drains + job.node_failures == 0)
      metrics.largest_share_of_a_job = std::max(metrics.largest_share_of_a_job, RepeatedShare(job));
    completion.push_back(static_cast<double>(*job.end - job.submitted) * kMs);
    waiting.push_back(static_cast<double>(job.waited_ms) * kMs);
    if (job.waited_ms > longest) {
      longest = job.waited_ms;
      metrics.longest_waiting_job = job.id;
    }
  }
  metrics.completion = Summarize(std::move(completion));
  metrics.waiting = Summarize(std::move(waiting));
  const double held = metrics.useful_gpu_s + metrics.lost_gpu_s + metrics.overhead_gpu_s;
  metrics.lost_share = Ratio(metrics.lost_gpu_s, held);
  metrics.overhead_share = Ratio(metrics.overhead_gpu_s, held);
}

}  // namespace

Distribution Summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto percentile = [&](double percent) {
    const auto rank =
        static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
    return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {static_cast<int64_t>(values.size()),
          sum / static_cast<double>(values.size()),
          percentile(50),
          percentile(90),
          percentile(99),
          values.back()};
}

Metrics Measure(const SimulationResult& result) {
  const SimulationTotals& totals = result.totals;
  Metrics metrics;
  metrics.jobs = static_cast<int64_t>(result.jobs.size());
  metrics.rejected = static_cast<int64_t>(result.rejected.size());
  metrics.never_ended = static_cast<int64_t>(result.never_ended.size());
  metrics.makespan_s = static_cast<double>(totals.end - totals.begin) * kMs;
  SumJobs(result, metrics);
  metrics.by_size = BySize(result);
  metrics.utilisation = Ratio(metrics.useful_gpu_s, totals.present * kMs);
  metrics.occupancy =
      Ratio(totals.busy_until_last_submission, totals.present_until_last_submission);
  metrics.idle_while_waiting = Ratio(totals.idle_while_waiting, totals.present);
  metrics.fragmentation = Ratio(totals.fragmented, totals.idle_while_waiting);
  metrics.starts = totals.starts;
  metrics.checkpoints_requested = totals.checkpoints_requested;
  metrics.deadlocks = totals.deadlocks;
  metrics.nodes_bought = totals.nodes_bought;
  metrics.nodes_failed = totals.nodes_failed;
  metrics.cost = totals.cost;
  metrics.cycles = totals.cycles;
  return metrics;
}

}  // namespace renzan::cluster::simulate
