// How often jobs start by the time that `renzan job explain` estimates (cluster/core/explain): a
// recorded trace is simulated, and jobs that wait are asked for in the cycle in which their wait
// begins, and after they have waited for ten minutes, an hour and ten hours. Where the time is
// known exactly, a start at that time counts as half by the median and as nine tenths by the 90 %
// quantile.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/core/explain/forecast.h"
#include "renzan/cluster/simulate/simulator.h"
#include "renzan/cluster/simulate/trace.h"
#include "renzan/data/text/input.h"

namespace renzan::cluster {
namespace {

using namespace simulate;

constexpr std::array<TimeMs, 4> kAskedAfter = {0, 10 * kMinute, kHour, 10 * kHour};

class Coverage {
 public:
  void Add(const Forecast& forecast, TimeMs start) {
    ++estimates_;
    Count(forecast.median, start, 0.5, by_median_, medians_);
    Count(forecast.p90, start, 0.9, by_p90_, p90s_);
  }

  void Print(const std::string& name) const {
    const auto percent = [](double part, double all) {
      return all == 0 ? std::string("–") : fmt::format("{:.0f} %", 100 * part / all);
    };
    fmt::print("| {} | {} | {} | {} | {} |\n", name, estimates_, percent(by_median_, medians_),
               percent(by_p90_, p90s_), percent(p90s_, estimates_));
  }

 private:
  static void Count(std::optional<TimeMs> estimate, TimeMs start, double tie, double& by,
                    double& known) {
    if (!estimate) return;
    ++known;
    by += start < *estimate ? 1 : start == *estimate ? tie : 0;
  }

  double estimates_ = 0, medians_ = 0, p90s_ = 0, by_median_ = 0, by_p90_ = 0;
};

// Asks while another policy decides.
class Asking : public SimulatedPolicy {
 public:
  Asking(int every, int cycles)
      : policy_(MakePolicy("renzan", 1)), every_(static_cast<uint32_t>(every)), cycles_(cycles) {}

  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output = policy_->Decide(input);
    for (const Start& start : output.decisions.starts) Starts(start.job, input.snapshot.now);
    std::optional<Snapshot> snapshot;
    for (const Wait& wait : output.decisions.waits) {
      const Job& job = *input.snapshot.Find(wait.job);
      if (job.eligible_at == kNever || Philox::Draw(7, job.id)[0] % every_ != 0) continue;
      std::vector<Asked>& asked = asked_[job.id];
      const TimeMs waited = input.snapshot.now - job.waiting_since;
      if (asked.size() == kAskedAfter.size() || waited < kAskedAfter[asked.size()]) continue;
      if (!snapshot) snapshot = input.for_estimates();
      CycleBudget budget(cycles_);
      asked.push_back(
          {ForecastStart(*snapshot, job.id, {}, budget), wait.reason == WaitReason::kPipelined});
    }
    return output;
  }
  bool IsScheduler() const override { return true; }

  void Print(const std::string& name) const {
    all_.Print(name);
    for (size_t at = 0; at < kAskedAfter.size(); ++at)
      others_must_end_[at].Print(
          at == 0 ? "— until others end, asked at once"
                  : fmt::format("— asked after {} min", kAskedAfter[at] / kMinute));
    room_is_made_.Print("— while others save and stop for it");
  }

 private:
  struct Asked {
    Forecast forecast;
    bool room_is_made;
  };

  void Starts(JobId job, TimeMs now) {
    const auto at = asked_.find(job);
    if (at == asked_.end()) return;
    for (size_t time = 0; time < at->second.size(); ++time) {
      const Asked& asked = at->second[time];
      all_.Add(asked.forecast, now);
      (asked.room_is_made ? room_is_made_ : others_must_end_[time]).Add(asked.forecast, now);
    }
    asked_.erase(at);
  }

  const std::unique_ptr<SimulatedPolicy> policy_;
  const uint32_t every_;
  const int cycles_;
  std::map<JobId, std::vector<Asked>> asked_;
  Coverage all_, room_is_made_;
  std::array<Coverage, kAskedAfter.size()> others_must_end_;
};

Snapshot Nodes(int count) {
  const Resources capacity{.amount = {32'000, 256 * 1024, 8}};
  return {.pools = {{.name = "node", .capacity = capacity, .min_nodes = count, .max_nodes = count}},
          .queues = {{.name = "default"}}};
}

void Run(const std::string& trace, const std::vector<double>& shares, int nodes, int every,
         int cycles, size_t limit) {
  fmt::print(
      "| estimates | number | started by the median | by the 90 % quantile | of which known |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (const double share : shares) {
    Snapshot cluster = Nodes(nodes);
    LineReader lines({trace});
    const Workload jobs = ReadTrace([&](std::string_view* line) { return lines.Next(line); }, trace,
                                    {.share_of_one_gpu = ShareOfOneGpu(cluster),
                                     .limit = limit,
                                     .checkpoint_share = share,
                                     .restart_ms = {60'000, 60'000}});
    MakeQueues(jobs, Quotas::kNone, cluster);
    // Where most jobs cannot be stopped, many more wait.
    Asking policy(share == 1 ? every : 3 * every, cycles);
    Simulate(cluster, jobs, policy);
    policy.Print(share == 1   ? "every job saves"
                 : share == 0 ? "none saves"
                              : fmt::format("{:.0f} % of the jobs save", 100 * share));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace renzan::cluster

int main(int argc, char** argv) {
  renzan::bench::Options command_line(
      "How often jobs of a recorded trace start by their estimated start");
  std::string trace;
  int nodes = 72, every = 200, cycles = 299;
  size_t limit = 0;
  std::vector<double> shares = {1, 0};
  command_line.Add("trace", &trace, "As for renzan simulate --trace");
  command_line.Add("--checkpoint-share", &shares, "Of the jobs, one after the other");
  command_line.Add("--nodes", &nodes, "Of 8 GPUs");
  command_line.Add("--every", &every, "Ask for one of so many jobs");
  command_line.Add("--cycles", &cycles, "Scheduling cycles of an estimate");
  command_line.Add("--limit", &limit, "Only the first jobs");
  command_line.ParseOrExit(argc, argv);
  try {
    renzan::cluster::Run(trace, shares, nodes, every, cycles, limit);
  } catch (const renzan::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
