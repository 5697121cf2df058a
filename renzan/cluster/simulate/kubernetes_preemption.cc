#include "renzan/cluster/simulate/kubernetes_preemption.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace renzan::cluster::simulate {

void VictimTable::Build() {
  if (std::exchange(built_, true)) return;
  pods_.resize(snapshot_.nodes.size());
  leaving_.resize(snapshot_.nodes.size());
  released_.resize(snapshot_.nodes.size());
  const auto add = [&](const Job& job, const Placement& placement) {
    for (const Placed& placed : placement)
      for (int worker = 0; worker < placed.workers; ++worker)
        pods_[placed.node].push_back({job.id, job.priority, job.started, job.request});
  };
  for (const Job& job : snapshot_.jobs) {
    if (job.state == JobState::kRunning && job.preemptible) add(job, job.placement);
    if (job.state == JobState::kStopping)
      for (const Placed& placed : job.placement) leaving_[placed.node] = true;
  }
  for (const auto& [id, placement] : held_) add(*snapshot_.Find(id), placement);
  for (std::vector<Pod>& pods : pods_)
    std::sort(pods.begin(), pods.end(), [](const Pod& a, const Pod& b) {
      return std::tuple(-a.priority, a.started, a.job) < std::tuple(-b.priority, b.started, b.job);
    });
}

bool VictimTable::HasBelow(int priority) {
  if (!lowest_priority_) {
    int lowest = std::numeric_limits<int>::max();
    for (const Job& job : snapshot_.jobs)
      if (job.state == JobState::kRunning && job.preemptible)
        lowest = std::min(lowest, job.priority);
    for (const auto& [id, placement] : held_)
      lowest = std::min(lowest, snapshot_.Find(id)->priority);
    lowest_priority_ = lowest;
  }
  return *lowest_priority_ < priority;
}

bool VictimTable::HasStopping(int node) {
  Build();
  return leaving_[node];
}

// Removes all lower pods, then puts back as many as possible, highest priority first.
bool VictimTable::Choose(Room& room, const WorkerRequest& request, int priority, int node,
                         Choice& choice) const {
  const Resources before = room.free(node);
  const std::vector<Pod>& pods = pods_[node];
  const auto size_of = [&](const Pod& pod) {
    return snapshot_.worker_requests[pod.request].per_worker;
  };
  room.Give(node, released_[node]);
  for (const Pod& pod : pods)
    if (pod.priority < priority) room.Give(node, size_of(pod));
  const bool fits = room.Fits(node, request);
  for (size_t index = 0; fits && index < pods.size(); ++index) {
    if (pods[index].priority >= priority) continue;
    room.Take(node, size_of(pods[index]));
    if (room.Fits(node, request)) continue;
    room.Give(node, size_of(pods[index]));
    choice.victims.push_back(index);
  }
  room.SetFree(node, before);
  choice.node = node;
  return fits;
}

// kube-scheduler's order: lowest highest victim priority, lowest sum of priorities, fewest victims,
// latest start of the highest victims.
bool VictimTable::Choice::BetterThan(const Choice& other,
                                     const std::vector<std::vector<Pod>>& pods) const {
  if (other.node < 0) return true;
  const auto rank = [&](const Choice& choice) {
    int64_t highest = std::numeric_limits<int64_t>::min(), sum = 0, started = 0;
    for (const size_t index : choice.victims) {
      const Pod& pod = pods[choice.node][index];
      if (highest < pod.priority) {
        highest = pod.priority;
        started = pod.started;
      }
      sum += pod.priority + (int64_t{1} << 31);
    }
    return std::tuple(highest, sum, choice.victims.size(), -started);
  };
  return rank(*this) < rank(other);
}

int VictimTable::Preempt(Room& room, const WorkerRequest& request, int priority,
                         std::vector<Evict>& evicts) {
  if (!HasBelow(priority)) return -1;
  Build();
  Choice best;
  for (int node = 0; node < static_cast<int>(pods_.size()); ++node) {
    Choice choice;
    if (Choose(room, request, priority, node, choice) && choice.BetterThan(best, pods_))
      best = std::move(choice);
  }
  if (best.node < 0) return -1;
  std::vector<Pod>& pods = pods_[best.node];
  for (auto victim = best.victims.rbegin(); victim != best.victims.rend(); ++victim) {
    const Pod& pod = pods[*victim];
    released_[best.node] += snapshot_.worker_requests[pod.request].per_worker;
    evicts.push_back({pod.job, best.node, 1});
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(*victim));
  }
  leaving_[best.node] = leaving_[best.node] || !best.victims.empty();
  return best.node;
}

}  // namespace renzan::cluster::simulate
