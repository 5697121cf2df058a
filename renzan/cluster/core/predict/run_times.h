#pragma once

// How long a job will run, learned from the jobs that have ended. The prediction is a distribution,
// given by quantiles: run times of jobs that look alike spread over orders of magnitude.
//
// For each kind of job, from general to specific (all jobs; of its size; of its queue; of its user;
// of its program), a histogram over the logarithm of the run time counts the jobs that ended, those
// long ago with less weight. A kind's distribution is its histogram, smoothed by that of the next
// more general kind, which counts as much as a few jobs (interpolation of back-off models; Jelinek
// and Mercer, 1980). So a kind with few ended jobs is predicted like the more general one.
//
// Predictions affect only the quality of decisions. It is a pure function of the jobs that were
// added, in their order. Not thread-safe.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What is known of a job when it is submitted.
struct JobTraits {
  std::string queue, user, name;
  int64_t size = 1;  // GPUs of the whole gang; workers, if it uses none
};

class RunTimes {
 public:
  // Fewer ended jobs are not enough for a prediction.
  static constexpr int kLeastJobs = 10;
  // Jobs are counted in generations of this size: the model knows the ended jobs of the current
  // generation and of the one before, and forgets all earlier ones. So a model to which only
  // FirstKnown() and later jobs were added is identical, bit for bit.
  static constexpr int64_t kGeneration = 20'000;
  // The first known job when `added` jobs, numbered from 0, have ended.
  static int64_t FirstKnown(int64_t added) {
    return std::max<int64_t>(0, added / kGeneration - 1) * kGeneration;
  }

  // A job has ended. `ran`: how long it ran, as if with all of its workers.
  void Add(const JobTraits& traits, TimeMs ran);
  // Unknown (all zero) until a few jobs have ended.
  RunTimeQuantiles Predict(const JobTraits& traits) const;

 private:
  static constexpr int kBins = 48;  // half an octave each, from a second: 194 days
  struct Histogram {
    std::array<float, kBins> count{};
    float total = 0;
  };
  using Kinds = std::map<std::string, Histogram>;

  int64_t added_ = 0;
  // The jobs of the previous and the current generation, and those of the current one only.
  Kinds known_, next_;
};

// The latest prediction that there is. For estimates, not for decisions.
inline const RunTimeQuantiles& LatestRunTime(const Job& job) {
  return job.run_time_now && job.run_time_now->back() > 0 ? *job.run_time_now : job.run_time;
}

// The share of the jobs like it that end within that time; beyond the last quantile, as below.
double ShareEnded(const RunTimeQuantiles& quantiles, TimeMs ran);

// How much longer a job that has run for `ran` (at least a minute is assumed) will run: this share,
// in (0, 1), of the jobs like it need less. Beyond the last quantile, and if nothing is known, run
// times are taken to have no typical scale (a density like 1 / t^2): half of the jobs then run for
// as long again.
TimeMs RemainingQuantile(const RunTimeQuantiles& quantiles, TimeMs ran, double share);

// The median, the best single guess.
inline TimeMs LikelyRemaining(const RunTimeQuantiles& quantiles, TimeMs ran) {
  return RemainingQuantile(quantiles, ran, 0.5);
}

}  // namespace renzan::cluster
