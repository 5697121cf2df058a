// Baselines that start whole gangs in pending-queue order.

#include <algorithm>
#include <limits>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

class InOrder : public SimulatedPolicy {
 public:
  explicit InOrder(bool overtake) : overtake_(overtake) {}

  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output;
    output.decisions.stops = StopOnLeavingNodes(input.snapshot);
    Room room(input.snapshot, input.free);
    // For each request, the smallest number of workers that did not fit. Room only shrinks.
    std::vector<int> too_many(input.snapshot.worker_requests.size(),
                              std::numeric_limits<int>::max());
    for (const PendingJob& job : input.pending) {
      if (job.min_workers >= too_many[job.request]) continue;
      auto placement =
          room.Place(input.snapshot.worker_requests[job.request], job.min_workers, job.max_workers);
      if (placement) {
        output.decisions.starts.push_back({job.job, std::move(*placement)});
        continue;
      }
      if (!overtake_) break;
      too_many[job.request] = job.min_workers;
    }
    return output;
  }

 private:
  const bool overtake_;
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeFifo() { return std::make_unique<InOrder>(false); }
std::unique_ptr<SimulatedPolicy> MakeBackfill() { return std::make_unique<InOrder>(true); }

}  // namespace renzan::cluster::simulate
