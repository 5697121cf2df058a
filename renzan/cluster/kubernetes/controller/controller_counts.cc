#include "renzan/cluster/kubernetes/controller/controller_counts.h"

#include "renzan/cluster/record/cycle_json.h"

namespace renzan::cluster::kubernetes {
namespace {

const std::vector<double> kCycleBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                          0.25,  0.5,    1,     2.5,  5,     10};
// From a second to three days.
const std::vector<double> kWaitBounds = {1, 5, 15, 60, 300, 900, 3600, 14400, 43200, 86400, 259200};

}  // namespace

size_t SizeClassOf(const Snapshot& snapshot, const Job& job) {
  const int64_t gpus =
      snapshot.worker_requests[job.request].per_worker.gpu() * int64_t{job.min_workers};
  return gpus == 0 ? 0 : gpus == 1 ? 1 : gpus < 8 ? 2 : gpus < 16 ? 3 : 4;
}

ControllerCounts::ControllerCounts()
    : cycle_seconds_(kCycleBounds),
      waited_{Histogram(kWaitBounds), Histogram(kWaitBounds), Histogram(kWaitBounds),
              Histogram(kWaitBounds), Histogram(kWaitBounds)} {
  // Present from the beginning, so that the first one counts as an increase.
  for (const char* kind :
       {"start", "stop", "resize", "checkpoint", "reserve", "scale_out", "scale_in"})
    decisions_[kind] = 0;
  for (int reason = 0; reason < static_cast<int>(StopReason::kRequested); ++reason)
    stops_[record::WordOf(static_cast<StopReason>(reason))] = 0;
}

void ControllerCounts::CountCycle(const Snapshot& snapshot, const Decisions& decisions,
                                  double seconds) {
  cycle_seconds_.Observe(seconds);
  const auto count = [&](const char* kind, size_t times) {
    decisions_[kind] += static_cast<int64_t>(times);
  };
  count("start", decisions.starts.size());
  count("stop", decisions.stops.size());
  count("resize", decisions.resizes.size());
  count("checkpoint", decisions.checkpoints.size());
  for (const Reservation& reservation : decisions.reservations) {
    const auto& before = snapshot.reservations;
    count("reserve", std::find(before.begin(), before.end(), reservation) == before.end() ? 1 : 0);
  }
  for (const ScaleOut& scale : decisions.scale_out)
    count("scale_out", static_cast<size_t>(scale.nodes));
  count("scale_in", decisions.scale_in.size());
  for (const Stop& stop : decisions.stops) ++stops_[record::WordOf(stop.reason)];
  for (const Start& start : decisions.starts) {
    const Job* job = snapshot.Find(start.job);
    waited_[SizeClassOf(snapshot, *job)].Observe(
        static_cast<double>(std::max<TimeMs>(0, snapshot.now - job->waiting_since)) / kSecond);
  }
}

void ControllerCounts::CountUse(const Snapshot& snapshot, TimeMs duration) {
  if (duration <= 0) return;
  const double seconds = static_cast<double>(duration) / kSecond;
  for (const Job& job : snapshot.jobs)
    if (!job.placement.empty())
      gpu_seconds_[job.queue] +=
          static_cast<double>(snapshot.worker_requests[job.request].per_worker.gpu() *
                              NumWorkers(job.placement)) *
          seconds;
  for (size_t pool = 0; pool < snapshot.pools.size(); ++pool)
    if (snapshot.pools[pool].price_per_hour > 0) cost_.try_emplace(static_cast<int>(pool), 0.0);
  // Nodes are paid for from the order until they are gone.
  for (const Node& node : snapshot.nodes)
    if (node.pool >= 0 && node.state != NodeState::kGone && cost_.contains(node.pool))
      cost_[node.pool] += snapshot.pools[node.pool].price_per_hour * seconds * kSecond / kHour;
}

}  // namespace renzan::cluster::kubernetes
