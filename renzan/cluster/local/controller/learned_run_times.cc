#include "renzan/cluster/local/controller/learned_run_times.h"

namespace renzan::cluster::local {

RunTimeQuantiles LearnedRunTimes::Predict(const JobTraits& traits) {
  for (const EndedRunTime& ended : store_.EndedRunTimesAfter(learned_)) {
    // The first one after a restart, or after so many without a prediction that the store has
    // deleted some. It has whole generations.
    if (ended.number != learned_ + 1) run_times_ = {};
    run_times_.Add(ended.traits, ended.ran_ms);
    learned_ = ended.number;
  }
  return run_times_.Predict(traits);
}

}  // namespace renzan::cluster::local
