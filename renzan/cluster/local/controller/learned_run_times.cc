#include "renzan/cluster/local/controller/learned_run_times.h"

namespace renzan::cluster::local {

RunTimeQuantiles LearnedRunTimes::Predict(const JobTraits& traits) {
  for (const EndedRunTime& ended : store_.EndedRunTimesAfter(learned_)) {
    // The first job after a restart, or after a time without predictions so long that the store has
    // deleted some. The store keeps whole generations.
    if (ended.number != learned_ + 1) run_times_ = {};
    run_times_.Add(ended.traits, ended.ran_ms);
    learned_ = ended.number;
  }
  return run_times_.Predict(traits);
}

}  // namespace renzan::cluster::local
