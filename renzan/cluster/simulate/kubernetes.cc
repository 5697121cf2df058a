// A model of kube-scheduler with default plugins and without a gang scheduler:
//  - Pods are scheduled one at a time, by priority, then creation. A worker is a pod. A job runs
//    once all its pods are bound; until then the bound ones hold their resources.
//  - An unschedulable pod is retried when resources become free on any node, but not before its
//    backoff has passed: 1 s, doubling with every attempt up to 10 s.
//  - Filters: requested resources, required labels, ready nodes.
//  - Scores, in whole points from 0 to 100: NodeResourcesFit (LeastAllocated) and
//    NodeResourcesBalancedAllocation, by default both over CPU and memory, not GPUs. Ties are
//    broken at random.
//  - Preemption (DefaultPreemption): on one node, of pods with lower priority, as few and as low as
//    possible. The node is nominated: its room is kept for the preemptor against lower pods.
// Evicting a pod interrupts its gang's run; the gang's other pods stay bound. All nodes are scored
// (percentageOfNodesToScore would skip some in clusters of more than 100 nodes). Gangs that are
// only partly bound have no timeout of their own.

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "renzan/base/philox.h"
#include "renzan/cluster/simulate/kubernetes_preemption.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {
namespace {

constexpr TimeMs kFirstBackoff = 1'000, kLongestBackoff = 10'000;
// Requests assumed for scoring if a pod has none: 100 milli-CPU, 200 MiB.
constexpr int64_t kDefaultCpu = 100, kDefaultMemory = 200;

class Kubernetes : public SimulatedPolicy {
 public:
  explicit Kubernetes(uint64_t seed) : key_(PhiloxKey(seed, "simulate/kubernetes")) {}

  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output;
    output.decisions.stops = StopOnLeavingNodes(input.snapshot);
    NoticeRoom(input);
    Room room(input.snapshot, input.free);
    for (const auto& [job, nodes] : nominated_) Nominate(input, room, job, nodes, 1);
    std::vector<bool> full(input.snapshot.worker_requests.size(), false);
    VictimTable victims(input.snapshot, input.held);
    for (const PendingJob& job : input.pending) {
      Pods& pods = pods_[job.job];
      if (pods.failed_at == epoch_) continue;  // nothing has become free since
      if (input.snapshot.now < pods.not_before) {
        if (!full[job.request]) LookAgain(output, pods.not_before);
        continue;
      }
      // Pods with the same request have just failed, and there are none that these could preempt.
      const bool hopeless = full[job.request] && !victims.HasBelow(job.priority);
      if (!hopeless && Attempt(input, job, room, victims, output)) {
        pods_.erase(job.job);
        continue;
      }
      full[job.request] = true;
      pods.not_before = input.snapshot.now +
                        std::min(kFirstBackoff << std::min(pods.attempts, 4), kLongestBackoff);
      ++pods.attempts;
      pods.failed_at = epoch_;
      if (nominated_.count(job.job) > 0) pods.failed_at = -1;  // its victims are stopping
    }
    last_free_.assign(input.free.begin(), input.free.end());
    for (const Hold& hold : output.holds)
      last_free_[hold.node] -= PerWorker(input, hold.job) * hold.workers;
    return output;
  }

 private:
  struct Pods {  // a job's unbound pods; they are attempted together
    int attempts = 0;
    TimeMs not_before = 0;
    int64_t failed_at = -1;  // epoch
  };
  using Nodes = std::vector<int>;

  static const Resources& PerWorker(const PolicyInput& input, JobId job) {
    return input.snapshot.worker_requests[input.snapshot.Find(job)->request].per_worker;
  }

  static void LookAgain(PolicyOutput& output, TimeMs when) {
    output.decisions.look_again = std::min(output.decisions.look_again, when);
  }

  // A new epoch begins when any node has more free than the last cycle left on it.
  void NoticeRoom(const PolicyInput& input) {
    last_free_.resize(input.free.size());
    for (size_t node = 0; node < input.free.size(); ++node) {
      if (input.free[node].FitsIn(last_free_[node])) continue;
      ++epoch_;
      return;
    }
  }

  static void Nominate(const PolicyInput& input, Room& room, JobId job, const Nodes& nodes,
                       int sign) {
    for (const int node : nodes) room.Take(node, PerWorker(input, job) * sign);
  }

  // Binds the job's unbound pods. Returns whether all are bound now; otherwise preempts others if
  // possible.
  bool Attempt(const PolicyInput& input, const PendingJob& job, Room& room, VictimTable& victims,
               PolicyOutput& output) {
    const WorkerRequest& request = input.snapshot.worker_requests[job.request];
    Nodes nominated;
    const auto kept = nominated_.find(job.job);
    if (kept != nominated_.end()) {
      nominated = std::move(kept->second);
      nominated_.erase(kept);
      Nominate(input, room, job.job, nominated, -1);
    }
    const auto held = input.held.find(job.job);
    int missing = job.max_workers - (held == input.held.end() ? 0 : NumWorkers(held->second));
    for (; missing > 0; --missing) {
      const int node = BestNode(input, room, request);
      if (node < 0) break;
      room.Take(node, request.per_worker);
      output.holds.push_back({job.job, node, 1});
    }
    if (missing == 0) return true;
    // Keep nominations whose victims are still stopping; the others have failed.
    std::erase_if(nominated, [&](int node) { return !victims.HasStopping(node); });
    nominated.resize(std::min(nominated.size(), static_cast<size_t>(missing)));
    Nominate(input, room, job.job, nominated, 1);
    while (static_cast<int>(nominated.size()) < missing) {
      const int node = victims.Preempt(room, request, job.priority, output.evicts);
      if (node < 0) break;
      room.Take(node, request.per_worker);
      nominated.push_back(node);
      LookAgain(output, input.snapshot.now + kFirstBackoff);
    }
    if (!nominated.empty()) nominated_[job.job] = std::move(nominated);
    return false;
  }

  static int64_t Score(const Node& node, const Resources& free, const Resources& request) {
    int64_t least_allocated = 0;
    double share[2];
    for (const int kind : {kCpu, kMemory}) {
      const int64_t capacity = std::max<int64_t>(1, node.capacity[kind]);
      const int64_t wanted =
          request[kind] > 0 ? request[kind] : (kind == kCpu ? kDefaultCpu : kDefaultMemory);
      const int64_t left = std::clamp<int64_t>(free[kind] - wanted, 0, capacity);
      least_allocated += left * 100 / capacity;
      share[kind] = 1 - static_cast<double>(left) / static_cast<double>(capacity);
    }
    const double deviation = std::abs(share[kCpu] - share[kMemory]) / 2;
    return least_allocated / 2 + static_cast<int64_t>((1 - deviation) * 100);
  }

  int BestNode(const PolicyInput& input, const Room& room, const WorkerRequest& request) {
    int best = -1;
    int64_t best_score = -1;
    uint32_t equals = 0;
    for (int node = 0; node < static_cast<int>(input.free.size()); ++node) {
      if (!room.Fits(node, request)) continue;
      const int64_t score = Score(input.snapshot.nodes[node], room.free(node), request.per_worker);
      if (score < best_score) continue;
      equals = score == best_score ? equals + 1 : 1;
      best_score = score;
      if (equals == 1 || Philox::Draw(key_, draws_++)[0] % equals == 0) best = node;
    }
    return best;
  }

  const uint64_t key_;
  uint64_t draws_ = 0;
  int64_t epoch_ = 0;
  std::vector<Resources> last_free_;
  std::unordered_map<JobId, Pods> pods_;
  std::map<JobId, Nodes> nominated_;  // one node per pod
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeKubernetes(uint64_t seed) {
  return std::make_unique<Kubernetes>(seed);
}

}  // namespace renzan::cluster::simulate
