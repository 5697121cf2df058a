#include "renzan/cluster/local/store/records.h"

#include <algorithm>

namespace renzan::cluster::local {
JobTraits TraitsOf(const JobRecord& job) {
  const int64_t gpus = job.gpus * job.max_workers;
  return {job.queue, job.user, job.name, gpus > 0 ? gpus : job.max_workers};
}

int64_t WorkerMs(const AttemptRecord& attempt) {
  if (!attempt.ended) return 0;
  return std::max<TimeMs>(0, *attempt.ended - attempt.started) * NumWorkers(attempt.placement);
}

}  // namespace renzan::cluster::local
