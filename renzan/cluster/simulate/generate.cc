#include "renzan/cluster/simulate/generate.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan::cluster::simulate {
namespace {

// Random values for one job, each keyed by its purpose.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t job) : seed_(seed), job_(job) {}

  double Uniform(const char* what) const {
    return static_cast<double>(Philox::Uniform(Block(what)[0]));
  }
  double Normal(const char* what) const {
    const Philox::Block block = Block(what);
    return Philox::Normal(block[0], block[1]);
  }

 private:
  Philox::Block Block(const char* what) const { return Philox::Draw(PhiloxKey(seed_, what), job_); }
  uint64_t seed_, job_;
};

int64_t TotalGpus(const Snapshot& cluster) {
  int64_t gpus = 0;
  for (const Node& node : cluster.nodes) gpus += node.capacity.gpu();
  return gpus;
}

// 1, 2, 4, ... up to `most`; larger sizes are rarer.
int64_t DrawSize(double uniform, double exponent, int64_t most) {
  const double ratio = std::exp2(-exponent);
  double sum = 0, weight = 1;
  for (int64_t size = 1; size <= most; size *= 2, weight *= ratio) sum += weight;
  double left = uniform * sum;
  weight = 1;
  int64_t size = 1;
  while (left >= weight && size * 2 <= most) {
    left -= weight;
    weight *= ratio;
    size *= 2;
  }
  return size;
}

// 0, 1, ..., n - 1, with probability proportional to 1 / (1 + k).
int DrawRank(double uniform, int n) {
  double sum = 0;
  for (int rank = 0; rank < n; ++rank) sum += 1.0 / (1 + rank);
  double left = uniform * sum;
  int rank = 0;
  while (rank + 1 < n && left >= 1.0 / (1 + rank)) left -= 1.0 / (1 + rank++);
  return rank;
}

// Most jobs that fail do so soon after their start, and as many times as they are tried (Jeon et
// al., Analysis of Large-Scale Multi-Tenant GPU Clusters, 2019): one to four failures, with three
// retries, so that a quarter of these jobs never gets its work done.
std::vector<TimeMs> DrawFailures(const Draws& draws) {
  constexpr double kMedianMs = 60e3, kSigma = 2;
  const int failures = 1 + static_cast<int>(draws.Uniform("workload/failures") * 4);
  const double after = kMedianMs * std::exp(kSigma * draws.Normal("workload/fails_after"));
  return std::vector<TimeMs>(failures, static_cast<TimeMs>(std::clamp(after, 1e3, 86400e3)));
}

WorkloadJob GenerateJob(const GenerateOptions& options, const Draws& draws, int64_t most_gpus,
                        int64_t gpus_per_node, const Resources& share) {
  WorkloadJob job;
  const int queue = DrawRank(draws.Uniform("workload/queue"), options.queues);
  job.queue = fmt::format("queue-{}", queue);
  job.user = fmt::format("user-{}-{}", queue,
                         DrawRank(draws.Uniform("workload/user"), options.users_per_queue));
  job.priority = draws.Uniform("workload/priority") < options.high_priority_share ? 10 : 0;
  const int64_t gpus = DrawSize(draws.Uniform("workload/size"), options.size_exponent, most_gpus);
  const bool elastic = gpus > 1 && draws.Uniform("workload/elastic") < options.elastic_share;
  const Gang gang =
      SplitIntoGang(gpus, elastic ? std::min<int64_t>(gpus / 2, gpus_per_node) : gpus_per_node);
  job.max_workers = gang.workers;
  job.min_workers = elastic ? std::max(1, gang.workers / 2) : gang.workers;
  job.per_worker = share * gang.gpus_per_worker;
  // Resizing needs a checkpoint.
  job.checkpoints = elastic || draws.Uniform("workload/checkpoints") < options.checkpoint_share;
  const double minutes =
      options.median_minutes * std::exp(options.sigma * draws.Normal("workload/minutes"));
  job.work_ms = static_cast<TimeMs>(std::clamp(minutes * 60e3, 10e3, 14 * 86400e3));
  job.restart_cost_ms = static_cast<TimeMs>(options.restart_seconds * 1e3);
  job.checkpoint_cost_ms = static_cast<TimeMs>(options.checkpoint_seconds * 1e3);
  if (draws.Uniform("workload/fails") < options.failing_share) {
    job.fails_after = DrawFailures(draws);
    job.retries = 3;
  }
  return job;
}

}  // namespace

void GenerateOptions::Describe(ConfigFields& fields) {
  fields.Range("jobs", &jobs, 1, 10'000'000, "number of jobs");
  fields.Field("seed", &seed, "same seed, same jobs");
  fields.Range("load", &load, 0.001, 100.0, "GPU time submitted per available GPU time");
  fields.Range("size_exponent", &size_exponent, 0.0, 10.0,
               "jobs of 2n GPUs are 2^-exponent times as frequent as jobs of n");
  fields.Range("largest_share", &largest_share, 0.0, 1.0, "of the cluster, for the largest job");
  fields.Range("median_minutes", &median_minutes, 0.01, 1e5, "of run times");
  fields.Range("sigma", &sigma, 0.0, 5.0, "of the logarithm of run times");
  fields.Range("queues", &queues, 1, 1000, "number of queues");
  fields.Range("users_per_queue", &users_per_queue, 1, 1000, "number of users per queue");
  fields.Range("high_priority_share", &high_priority_share, 0.0, 1.0, "of jobs");
  fields.Range("elastic_share", &elastic_share, 0.0, 1.0, "of jobs with more than one GPU");
  fields.Range("checkpoint_share", &checkpoint_share, 0.0, 1.0, "of jobs");
  fields.Range("failing_share", &failing_share, 0.0, 1.0,
               "of jobs that fail one to four times, mostly within minutes, with three retries");
  fields.Range("restart_seconds", &restart_seconds, 0.0, 86400.0, "lost by each restart");
  fields.Range("checkpoint_seconds", &checkpoint_seconds, 0.0, 86400.0, "taken by each stop");
}

GenerateOptions ReadGenerateOptions(std::string_view text) {
  std::vector<std::string> overrides;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    overrides.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
  }
  GenerateOptions options;
  ReadConfigText("", "--generate", overrides,
                 [&](ConfigFields& fields) { options.Describe(fields); });
  return options;
}

Workload GenerateWorkload(const GenerateOptions& options, const Snapshot& cluster) {
  const int64_t gpus = TotalGpus(cluster);
  if (gpus == 0)
    Fail(ErrorCode::kUsage,
         "the cluster has no GPUs to generate jobs for: add GPUs and nodes to a pool");
  const int64_t most =
      std::max<int64_t>(1, static_cast<int64_t>(options.largest_share * static_cast<double>(gpus)));
  const Resources share = ShareOfOneGpu(cluster);
  Workload jobs;
  double gpu_ms = 0;
  std::vector<double> gaps;
  for (int64_t number = 0; number < options.jobs; ++number) {
    const Draws draws(options.seed, static_cast<uint64_t>(number));
    jobs.push_back(GenerateJob(options, draws, most, LargestNodeGpus(cluster), share));
    gaps.push_back(-std::log(1 - draws.Uniform("workload/gap")));
    gpu_ms += static_cast<double>(jobs.back().gpus()) * static_cast<double>(jobs.back().work_ms);
  }
  // The mean gap between arrivals follows from the requested load.
  const double mean_gap =
      gpu_ms / (options.load * static_cast<double>(gpus)) / static_cast<double>(options.jobs);
  double now = 0;
  for (size_t number = 0; number < jobs.size(); ++number) {
    jobs[number].submitted = static_cast<TimeMs>(now);
    now += gaps[number] * mean_gap;
  }
  return jobs;
}

}  // namespace renzan::cluster::simulate
