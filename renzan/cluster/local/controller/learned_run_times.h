#pragma once

// The run times of ended jobs, from which those of new ones are predicted (predict/run_times.h).
// Nothing is stored for it: the history that the store has tells the same after a restart.

#include <map>

#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class LearnedRunTimes {
 public:
  // What this job's run time is expected to be, from those that have ended.
  RunTimeQuantiles Predict(const JobRecord& job) const;
  // It has ended. One that never ran says nothing.
  void Add(const JobRecord& job);

  // From the store's newest ended jobs. Returns what each of the unfinished ones, sorted by id, was
  // expected to need when it was submitted.
  std::map<JobId, RunTimeQuantiles> Recover(Store& store, const std::vector<JobRecord>& unfinished);

 private:
  RunTimes run_times_;
};

}  // namespace renzan::cluster::local
