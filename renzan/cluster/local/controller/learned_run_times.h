#pragma once

// Predictions from the run times of ended jobs in the store. For one thread.

#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class LearnedRunTimes {
 public:
  explicit LearnedRunTimes(Store& store) : store_(store) {}

  // The expected run time of a job submitted now.
  RunTimeQuantiles Predict(const JobTraits& traits);

 private:
  Store& store_;
  RunTimes run_times_;
  int64_t learned_ = 0;  // number of the last one added
};

}  // namespace renzan::cluster::local
