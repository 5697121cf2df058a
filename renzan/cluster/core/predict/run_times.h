#pragma once

// How long a job will run, learned from the jobs that have ended. The prediction is a distribution,
// given by quantiles: run times of jobs that look alike spread over orders of magnitude.
//
// For each kind of job, from general to specific (all jobs; of its size; of its queue; of its user;
// of its program), a histogram over the logarithm of the run time counts the jobs that ended, those
// long ago with less weight. A kind's distribution is its histogram, smoothed by that of the next
// more general kind, which counts as much as a few jobs (interpolation of back-off models; Jelinek
// and Mercer, 1980). So a kind of which few jobs have ended is predicted like the more general one.
//
// Nothing depends on a prediction but the quality of decisions. It is a pure function of the jobs
// that were added, in their order. Not thread-safe.

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
  // A kind of job that was not seen among so many is forgotten; only these have to be added again
  // after a restart.
  static constexpr int64_t kRemembered = 10'000;

  // A job has ended, after it ran for so long.
  void Add(const JobTraits& traits, TimeMs ran);
  // Unknown (all zero) until a few jobs have ended.
  RunTimeQuantiles Predict(const JobTraits& traits) const;

 private:
  static constexpr int kBins = 48;  // half an octave each, from a second: 194 days
  struct Histogram {
    std::array<float, kBins> count{};
    float total = 0;
    int64_t last = 0;  // Add() that counted here
  };

  int64_t added_ = 0;
  std::map<std::string, Histogram> kinds_;
};

// How much longer a job runs that has run for `ran` already: half of those like it need less.
// Beyond the last quantile, and if nothing is known, as long again (at least a minute), which is
// the best single guess when run times have no typical scale.
TimeMs LikelyRemaining(const RunTimeQuantiles& quantiles, TimeMs ran);

}  // namespace renzan::cluster
