// How well run times are predicted (cluster/core/predict): trained on the first half of a recorded
// trace and tested on the second, against the quantiles of all jobs of the same size. The pinball
// loss of a quantile q is q times how far the outcome is above it, or 1 - q times how far it is
// below (Koenker and Bassett, 1978); here in octaves and in hours, averaged over the quantiles.
// Coverage is the share of outcomes below a quantile.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/simulate/trace.h"
#include "renzan/data/text/input.h"

namespace renzan::cluster {
namespace {

using simulate::Workload;
using simulate::WorkloadJob;

JobTraits TraitsOf(const WorkloadJob& job) { return {job.queue, job.user, job.name, job.gpus()}; }

// Also with the quarter of the day and the day of the week, as if they were its program.
JobTraits WithTimeOfWeek(const WorkloadJob& job) {
  const int64_t hour = job.submitted / kHour;
  JobTraits traits = TraitsOf(job);
  for (const int64_t each : {hour % 24 / 6, hour / 24 % 7})
    traits.name.insert(0, 1, static_cast<char>('a' + each));
  return traits;
}

// The quantiles of all jobs of about that size.
class SizeQuantiles {
 public:
  void Add(const WorkloadJob& job) { ran_[SizeOf(job)].push_back(job.work_ms); }

  RunTimeQuantiles Predict(const WorkloadJob& job) {
    std::vector<TimeMs>& ran = ran_[SizeOf(job)];
    RunTimeQuantiles quantiles{};
    if (ran.empty()) return quantiles;
    std::sort(ran.begin(), ran.end());
    for (size_t i = 0; i < quantiles.size(); ++i)
      quantiles[i] = ran[static_cast<size_t>(kQuantiles[i] * static_cast<float>(ran.size()))];
    return quantiles;
  }

 private:
  static uint64_t SizeOf(const WorkloadJob& job) {
    return std::bit_ceil(static_cast<uint64_t>(job.gpus()));
  }
  std::map<uint64_t, std::vector<TimeMs>> ran_;
};

class Score {
 public:
  void Add(const RunTimeQuantiles& predicted, TimeMs ran) {
    ++jobs_;
    for (size_t i = 0; i < predicted.size(); ++i) {
      const auto expected = static_cast<double>(std::max<TimeMs>(predicted[i], 1));
      const auto got = static_cast<double>(ran);
      octaves_ += Pinball(kQuantiles[i], std::log2(got / expected));
      hours_ += Pinball(kQuantiles[i], (got - expected) / kHour);
      covered_[i] += ran <= predicted[i];
    }
  }

  void Print(const char* name) const {
    const double all = static_cast<double>(jobs_) * static_cast<double>(kQuantiles.size());
    fmt::print("| {} | {:.3f} | {:.2f} |", name, octaves_ / all, hours_ / all);
    for (const int64_t covered : covered_)
      fmt::print(" {:.0f} % |", 100.0 * static_cast<double>(covered) / static_cast<double>(jobs_));
    fmt::print("\n");
  }

 private:
  static double Pinball(double quantile, double above) {
    return above > 0 ? quantile * above : (quantile - 1) * above;
  }

  int64_t jobs_ = 0;
  double octaves_ = 0, hours_ = 0;
  std::array<int64_t, kQuantiles.size()> covered_{};
};

// Whether jobs of a user run alike beyond what is predicted: over pairs of jobs that run at the
// same time, by how long apart they were submitted, the correlation of the share of jobs like them,
// of those that ran for as long, that end sooner.
class Alike {
 public:
  static constexpr std::array<TimeMs, 5> kApart = {kHour, 6 * kHour, 24 * kHour, 96 * kHour,
                                                   kNever};
  static constexpr TimeMs kEvery = 3 * kHour;

  void Add(const WorkloadJob& job, const RunTimeQuantiles& predicted) {
    for (; look_ <= job.submitted; look_ += kEvery) Look();
    if (predicted.back() > 0)
      running_[{job.queue, job.user}].push_back({job.submitted, job.work_ms, predicted});
  }

  void Print() const {
    for (size_t at = 0; at < kApart.size(); ++at)
      fmt::print("| {} | {:.2f} | {} |\n",
                 at + 1 == kApart.size() ? "longer" : fmt::format("< {} h", kApart[at] / kHour),
                 pairs_[at].Covariance() / alone_.Covariance(), pairs_[at].count);
  }

 private:
  struct Running {
    TimeMs submitted, work;
    RunTimeQuantiles predicted;
  };
  struct Sums {
    int64_t count = 0;
    double x = 0, y = 0, xy = 0;
    double Covariance() const {
      const auto n = static_cast<double>(count);
      return xy / n - x / n * (y / n);
    }
  };
  static void Add(double x, double y, Sums& to) {
    ++to.count;
    to.x += x;
    to.y += y;
    to.xy += x * y;
  }

  void Look() {
    for (auto& [user, running] : running_) {
      std::erase_if(running, [&](const Running& job) { return job.submitted + job.work <= look_; });
      std::vector<double> shares;
      for (const Running& job : running) {
        const double ended = ShareEnded(job.predicted, look_ - job.submitted);
        shares.push_back((ShareEnded(job.predicted, job.work) - ended) / (1 - ended));
        Add(shares.back(), shares.back(), alone_);
      }
      for (size_t at = 0; at < running.size(); ++at)
        for (size_t other = 0; other < at; ++other) {
          size_t apart = 0;
          while (running[at].submitted - running[other].submitted >= kApart[apart]) ++apart;
          Add(shares[at], shares[other], pairs_[apart]);
        }
    }
  }

  TimeMs look_ = 0;
  std::map<std::pair<std::string, std::string>, std::vector<Running>> running_;
  Sums alone_;
  std::array<Sums, kApart.size()> pairs_;
};

void Run(const std::string& trace) {
  LineReader lines({trace});
  Workload jobs = simulate::ReadTrace([&](std::string_view* line) { return lines.Next(line); },
                                      trace, {.share_of_one_gpu = {.amount = {0, 0, 1}}});
  const size_t half = jobs.size() / 2;
  SizeQuantiles by_size;
  RunTimes learned, frozen, by_time;
  Score size_score, frozen_score, learned_score, by_time_score;
  Alike alike;
  // A job is known once it has ended; here it starts when it is submitted.
  using End = std::pair<TimeMs, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (size_t at = 0; at < jobs.size(); ++at) {
    const WorkloadJob& job = jobs[at];
    for (; !ends.empty() && ends.top().first < job.submitted; ends.pop()) {
      const WorkloadJob& ended = jobs[ends.top().second];
      learned.Add(TraitsOf(ended), ended.work_ms);
      by_time.Add(WithTimeOfWeek(ended), ended.work_ms);
      if (at < half) by_size.Add(ended);
    }
    ends.emplace(job.submitted + job.work_ms, at);
    if (at < half) alike.Add(job, learned.Predict(TraitsOf(job)));
    if (at == half) frozen = learned;
    if (at < half) continue;
    size_score.Add(by_size.Predict(job), job.work_ms);
    frozen_score.Add(frozen.Predict(TraitsOf(job)), job.work_ms);
    learned_score.Add(learned.Predict(TraitsOf(job)), job.work_ms);
    by_time_score.Add(by_time.Predict(WithTimeOfWeek(job)), job.work_ms);
  }
  fmt::print(
      "| {} jobs after {} | pinball loss, octaves | hours | below the 10 % quantile | 25 % | 50 % "
      "| 75 % | 90 % |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      jobs.size() - half, half);
  size_score.Print("all jobs of the size, first half");
  frozen_score.Print("learned from the first half");
  learned_score.Print("learned until the job is submitted");
  by_time_score.Print("and with hour and weekday as traits");
  fmt::print(
      "\nHow long a user's jobs will still run, beyond what is predicted, on the first half:\n\n"
      "| submitted | correlation | pairs |\n| --- | --- | --- |\n");
  alike.Print();
}

}  // namespace
}  // namespace renzan::cluster

int main(int argc, char** argv) {
  renzan::bench::Options command_line("How well the run times of a recorded trace are predicted");
  std::string trace;
  command_line.Add("trace", &trace, "As for renzan simulate --trace");
  command_line.ParseOrExit(argc, argv);
  try {
    renzan::cluster::Run(trace);
  } catch (const renzan::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
