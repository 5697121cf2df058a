// First in, first out for workers instead of jobs.

#include <limits>

#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

class FifoWithoutGangs : public SimulatedPolicy {
 public:
  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output;
    output.decisions.stops = StopOnLeavingNodes(input.snapshot);
    Room room(input.snapshot, input.free);
    std::vector<bool> full(input.snapshot.worker_requests.size(), false);
    for (const Waiting& job : input.line) {
      if (full[job.request]) continue;
      const WorkerRequest& request = input.snapshot.worker_requests[job.request];
      const auto held = input.held.find(job.job);
      const int there = held == input.held.end() ? 0 : NumWorkers(held->second);
      for (int worker = there; worker < job.max_workers; ++worker) {
        const int node = room.BestNode(request);
        full[job.request] = node < 0;
        if (node < 0) break;
        room.Take(node, request.per_worker);
        output.holds.push_back({job.job, node, 1});
      }
    }
    return output;
  }
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeFifoWithoutGangs() {
  return std::make_unique<FifoWithoutGangs>();
}

}  // namespace renzan::cluster::simulate
