#include "renzan/cluster/local/controller/learned_run_times.h"

#include <algorithm>
#include <tuple>

namespace renzan::cluster::local {
namespace {

JobTraits TraitsOf(const JobRecord& job) {
  const int64_t gpus = job.gpus * job.max_workers;
  return {job.queue, job.user, job.name, gpus > 0 ? gpus : job.max_workers};
}

}  // namespace

RunTimeQuantiles LearnedRunTimes::Predict(const JobRecord& job) const {
  return run_times_.Predict(TraitsOf(job));
}

void LearnedRunTimes::Add(const JobRecord& job) {
  if (job.run_ms > 0) run_times_.Add(TraitsOf(job), job.run_ms);
}

std::map<JobId, RunTimeQuantiles> LearnedRunTimes::Recover(
    Store& store, const std::vector<JobRecord>& unfinished) {
  std::vector<JobRecord> ended = store.EndedJobs({}, RunTimes::kRemembered);
  std::sort(ended.begin(), ended.end(), [](const JobRecord& a, const JobRecord& b) {
    return std::tuple(*a.ended, a.id) < std::tuple(*b.ended, b.id);
  });
  std::map<JobId, RunTimeQuantiles> predicted;
  auto next = ended.begin();
  for (const JobRecord& job : unfinished) {
    for (; next != ended.end() && *next->ended < job.submitted; ++next) Add(*next);
    predicted[job.id] = Predict(job);
  }
  for (; next != ended.end(); ++next) Add(*next);
  return predicted;
}

}  // namespace renzan::cluster::local
