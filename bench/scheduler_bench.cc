// How long a scheduling cycle takes on a large cluster, how that grows with nodes and pending jobs,
// and how many jobs are admitted per second. The cluster is full: some jobs end between cycles and
// as many are submitted. Priorities, quotas, levels of service, gangs, elastic jobs and
// reservations are all in use.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/schedule.h"

namespace renzan::cluster {
namespace {

constexpr int kQueues = 30;
constexpr int64_t kGpusPerNode = 8;
// One of this many running jobs ends between two cycles.
constexpr uint32_t kLifetimeCycles = 1000;

class BusyCluster : private Environment {
 public:
  BusyCluster(int nodes, int64_t gpus, uint64_t seed) : seed_(seed) {
    snapshot_.now = 1'000'000'000;
    for (int node = 0; node < nodes; ++node)
      snapshot_.nodes.push_back({.name = fmt::format("n{}", node),
                                 .capacity = {.amount = {gpus * 12'000, gpus * 128 * 1024, gpus}},
                                 .labels = {{"rack", fmt::format("r{}", node / 32)}}});
    snapshot_.topology_levels = {"rack"};
    for (int queue = 0; queue < kQueues; ++queue) {
      snapshot_.queues.push_back({.name = fmt::format("q{}", queue)});
      snapshot_.queues.back().guaranteed[kGpu] = nodes * gpus / kQueues;
      snapshot_.users.push_back({.name = fmt::format("u{}", queue)});
    }
  }

  uint32_t Draw(uint32_t below) { return Philox::Draw(seed_, draws_++, 0)[0] % below; }

  // Returns the GPUs that the job requests.
  int64_t Submit(bool only_small) {
    Job job{.id = ++last_id_, .queue = static_cast<int>(Draw(kQueues)), .submitted = snapshot_.now};
    job.waiting_since = job.submitted;
    job.user = job.queue;
    job.checkpoints = Draw(10) < 8;
    job.priority = Draw(10) == 0 ? 1 + static_cast<int>(Draw(2)) : 0;
    const uint32_t kind = only_small ? Draw(90) : Draw(100);
    int64_t gpus = kind < 50 ? 1 : kind < 65 ? 2 : kind < 80 ? 4 : 8;
    if (kind >= 90) job.min_workers = job.max_workers = 2 << Draw(4);
    if (job.checkpoints && Draw(20) == 0) job.max_workers = job.min_workers * 2;
    WorkerRequest request{.per_worker = {.amount = {gpus * 8'000, gpus * 64 * 1024, gpus}}};
    if (job.min_workers > 1 && Draw(2) == 0) {
      request.topology_level = "rack";
      request.topology_required = Draw(2) == 0;
    }
    job.request = snapshot_.InternRequest(request);
    // Some have run before, so that levels of service, and moves that pay, are in use.
    if (Draw(4) == 0) job.attained_worker_ms = Draw(400) * kHour * job.max_workers;
    snapshot_.jobs.push_back(job);
    return gpus * job.min_workers;
  }

  // Submits jobs, or cancels the newest, until exactly `wanted` are pending.
  void KeepPending(int wanted) {
    int waiting = pending();
    for (; waiting < wanted; ++waiting) Submit(/*only_small=*/false);
    for (auto job = snapshot_.jobs.rbegin(); waiting > wanted; ++job) {
      if (job->state != JobState::kPending) continue;
      job->id = -job->id;
      --waiting;
    }
    EraseEnded();
  }

  Decisions Cycle(std::vector<double>* seconds) {
    const double start = SystemClock().MonotonicSeconds();
    Decisions decisions = Schedule(snapshot_);
    if (seconds != nullptr) seconds->push_back(SystemClock().MonotonicSeconds() - start);
    return decisions;
  }

  void Apply(const Decisions& decisions) { CarryOut(decisions, snapshot_, *this); }

  // One second passes: stopping jobs have stopped, and one in `one_in` running jobs ends.
  void Advance(uint32_t one_in) {
    snapshot_.now += 1000;
    for (Job& job : snapshot_.jobs) {
      if (job.state == JobState::kStopping) {
        RequeueGang(job, snapshot_.now);
      } else if (job.state == JobState::kResizing) {
        RestartGang(job, snapshot_.now);
      } else if (job.state == JobState::kRunning && Draw(one_in) == 0) {
        job.id = -job.id;
      }
    }
    EraseEnded();
  }

  int pending() const {
    return static_cast<int>(
        std::count_if(snapshot_.jobs.begin(), snapshot_.jobs.end(),
                      [](const Job& job) { return job.state == JobState::kPending; }));
  }
  int running() const { return static_cast<int>(snapshot_.jobs.size()) - pending(); }

 private:
  void Perform(const Start&) override {}
  void Perform(const Stop&) override {}
  void Perform(const Resize&) override {}
  void Perform(const CheckpointRequest&) override {}
  void Perform(const NodeChange&) override {}

  // Jobs to erase have a negative id.
  void EraseEnded() {
    std::erase_if(snapshot_.jobs, [](const Job& job) { return job.id < 0; });
  }

  Snapshot snapshot_;
  uint64_t seed_, draws_ = 0;
  JobId last_id_ = 0;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * values.size()))];
}

// A cluster filled with small jobs, with `pending` jobs of all kinds.
BusyCluster MakeBusyCluster(int nodes, int pending, uint64_t seed) {
  BusyCluster cluster(nodes, kGpusPerNode, seed);
  for (int64_t asked = 0; asked < nodes * kGpusPerNode;) asked += cluster.Submit(true);
  cluster.Apply(cluster.Cycle(nullptr));
  cluster.KeepPending(pending);
  // The first cycles preempt more than all later ones.
  constexpr int kWarmUp = 30;
  for (int cycle = 0; cycle < kWarmUp; ++cycle) {
    cluster.Apply(cluster.Cycle(nullptr));
    cluster.Advance(kLifetimeCycles);
    cluster.KeepPending(pending);
  }
  return cluster;
}

// Prints a row of the table and returns the median in seconds. `half` is the median of the row
// before, with half as many nodes or jobs; 0 for none.
double MeasureCycles(int nodes, int pending, int cycles, uint64_t seed, double half) {
  BusyCluster cluster = MakeBusyCluster(nodes, pending, seed);
  std::vector<double> seconds;
  size_t starts = 0, stops = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    CHECK(cluster.pending() == pending);
    const Decisions decisions = cluster.Cycle(&seconds);
    starts += decisions.starts.size();
    stops += decisions.stops.size();
    cluster.Apply(decisions);
    cluster.Advance(kLifetimeCycles);
    cluster.KeepPending(pending);
  }
  const double median = Quantile(seconds, 0.5);
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.1f} | {} |\n", nodes, pending,
             cluster.running(), 1e3 * median, 1e3 * Quantile(seconds, 0.99),
             1e3 * Quantile(seconds, 1), static_cast<double>(starts) / cycles,
             static_cast<double>(stops) / cycles,
             half > 0 ? fmt::format("{:.2f}", median / half) : "");
  std::fflush(stdout);
  return median;
}

void MeasureGrowth(int nodes, int pending, int cycles, uint64_t seed) {
  fmt::print(
      "| nodes | pending | running | cycle: median ms | p99 ms | max ms | starts per cycle "
      "| stops per cycle | median / previous row (at most 2: no worse than linear) |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  double half = 0;
  for (const int part : {4, 2, 1}) half = MeasureCycles(nodes / part, pending, cycles, seed, half);
  half = 0;
  for (const int part : {4, 2, 1}) half = MeasureCycles(nodes, pending / part, cycles, seed, half);
  MeasureCycles(4 * nodes, 5 * pending, cycles / 3 + 1, seed, 0);
}

// As in Kueue's performance suite: many jobs in 30 queues, all submitted at the start and admitted
// as resources become free; each runs for a few cycles.
void MeasureAdmissions(int jobs, uint64_t seed) {
  const double start = SystemClock().MonotonicSeconds();
  BusyCluster cluster(250, kGpusPerNode, seed);
  for (int job = 0; job < jobs; ++job) cluster.Submit(true);
  size_t admitted = 0;
  std::vector<double> seconds;
  while (cluster.pending() > 0) {
    const Decisions decisions = cluster.Cycle(&seconds);
    admitted += decisions.starts.size();
    cluster.Apply(decisions);
    cluster.Advance(3);
  }
  const double all = SystemClock().MonotonicSeconds() - start;
  const double scheduling = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  fmt::print(
      "\n{} admissions from {} queues in {} cycles: {:.0f} per second of scheduling ({:.2f} s), "
      "{:.0f} per second including this program's own bookkeeping ({:.2f} s)\n",
      admitted, kQueues, seconds.size(), static_cast<double>(admitted) / scheduling, scheduling,
      static_cast<double>(admitted) / all, all);
}

int Main(int argc, char** argv) {
  int cycles = 300, nodes = 5000, pending = 10000, jobs = 15000;
  uint64_t seed = 1;
  bench::Options command_line(
      "Measures scheduling cycles on a busy cluster; prints a Markdown table");
  command_line.Add("--cycles", &cycles);
  command_line.Add("--nodes", &nodes, "the largest cluster");
  command_line.Add("--pending", &pending, "the longest pending queue");
  command_line.Add("--jobs", &jobs, "jobs to be admitted");
  command_line.Add("--seed", &seed);
  command_line.ParseOrExit(argc, argv);
  MeasureGrowth(nodes, pending, cycles, seed);
  MeasureAdmissions(jobs, seed);
  return 0;
}

}  // namespace
}  // namespace renzan::cluster

int main(int argc, char** argv) { return renzan::cluster::Main(argc, argv); }
