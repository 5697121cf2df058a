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
  // Jobs are counted in generations of so many: the ended jobs of the current one and of the one
  // before are known, all earlier ones are forgotten. So a model to which only FirstKnown() and
  // later jobs were added is the same, to the bit.
  static constexpr int64_t kGeneration = 20'000;
  // Of `added` ended jobs, numbered from 0.
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
  // With the jobs of the previous and the current generation, and with the current one's only.
  Kinds known_, next_;
};

// How much longer a job runs that has run for `ran` already: half of those like it need less.
// Where that is beyond the last quantile, and if nothing is known, as long again (at least a
// minute), which is the best single guess when run times have no typical scale.
TimeMs LikelyRemaining(const RunTimeQuantiles& quantiles, TimeMs ran);

}  // namespace renzan::cluster
