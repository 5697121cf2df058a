#include "renzan/cluster/core/explain/why_it_waits.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/amounts.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {
namespace {

constexpr size_t kMostListed = 4;

std::string Duration(TimeMs ms) {
  const TimeMs seconds = (ms + 999) / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{:.1f} h", static_cast<double>(seconds) / 3600);
}

// "1", "1 and 2", "1, 2 and 3", "1, 2, 3, 4 and 5 more"
std::string Enumerated(const std::vector<std::string>& names) {
  if (names.size() < 2 || names.size() > kMostListed) return ListSome(names);
  return ListSome({names.begin(), names.end() - 1}) + " and " + names.back();
}

class Reasons {
 public:
  Reasons(const Snapshot& snapshot, const Job& job)
      : snapshot_(snapshot),
        job_(job),
        request_(snapshot.worker_requests[job.request]),
        view_(snapshot),
        quota_(view_) {}

  std::string Sentence(const Wait& wait) const {
    switch (wait.reason) {
      case WaitReason::kInfeasible:
        return WhyInfeasible(snapshot_, job_);
      case WaitReason::kBackoff:
        return fmt::format(
            "its last attempt ended before it was done; the next one starts in {} at the earliest",
            Duration(job_.eligible_at - snapshot_.now));
      case WaitReason::kQueueLimit:
        return Limit();
      case WaitReason::kUserCap:
        return Cap();
      case WaitReason::kGuaranteedQuota:
        return Guarantee();
      case WaitReason::kResources:
      case WaitReason::kFragmented:
        return RoomNow();
      case WaitReason::kReserved:
        return fmt::format(
            "needs {}, which would fit, but the free resources are reserved for job {}{}", Demand(),
            wait.blocked_by, WhyItMayNotBorrow());
      case WaitReason::kPipelined:
        return Stopping();
      case WaitReason::kNodesBooting:
        return Booting();
      case WaitReason::kWithheld:
        return "decisions about it are not carried out";
    }
    CHECK(false);
  }

 private:
  std::string Demand() const {
    const std::string each = DescribeResources(snapshot_, request_.per_worker);
    if (job_.min_workers == 1) return fmt::format("one worker with {}", each);
    return fmt::format("{} at the same time, each with {}", Counted(job_.min_workers, "worker"),
                       each);
  }

  std::string Limit() const {
    const Queue& queue = snapshot_.queues[job_.queue];
    const Resources demand = request_.per_worker * job_.min_workers;
    for (int kind = 0; kind < kMaxResources; ++kind) {
      const int64_t used = quota_.used(job_.queue)[kind];
      if (queue.limit[kind] == kUnlimited || used + demand[kind] <= queue.limit[kind]) continue;
      return fmt::format("queue {} has a limit of {}; it uses {} and the job needs {}, {} too many",
                         queue.name, DescribeAmount(snapshot_, kind, queue.limit[kind]),
                         DescribeAmount(snapshot_, kind, used),
                         DescribeAmount(snapshot_, kind, demand[kind]),
                         DescribeAmount(snapshot_, kind, used + demand[kind] - queue.limit[kind]));
    }
    return fmt::format("the rest of the limit of queue {} goes to jobs ahead of it", queue.name);
  }

  std::string Guarantee() const {
    const Queue& queue = snapshot_.queues[job_.queue];
    const Resources demand = request_.per_worker * job_.min_workers;
    for (const int kind : GuaranteedKinds(snapshot_)) {
      const int64_t used = quota_.used_by_fixed(job_.queue)[kind];
      if (demand[kind] == 0 || used + demand[kind] <= queue.guaranteed[kind]) continue;
      return fmt::format(
          "it is not preemptible and may only use the guaranteed quota of queue {}, {}; such jobs "
          "use {} of it and the job needs {}",
          queue.name, DescribeAmount(snapshot_, kind, queue.guaranteed[kind]),
          DescribeAmount(snapshot_, kind, used), DescribeAmount(snapshot_, kind, demand[kind]));
    }
    return fmt::format("the rest of the guaranteed quota of queue {} goes to jobs ahead of it",
                       queue.name);
  }

  std::string Cap() const {
    const int64_t cap = snapshot_.users[job_.user].CapAt(snapshot_.now);
    const int64_t used = quota_.gpus_of(job_.user);
    const int64_t demand = request_.per_worker.gpu() * job_.min_workers;
    if (used + demand <= cap)
      return fmt::format(
          "user {} has a cap of {}; running jobs use {}, and jobs ahead of it get too "
          "much of the rest",
          snapshot_.users[job_.user].name, DescribeAmount(snapshot_, kGpu, cap),
          DescribeAmount(snapshot_, kGpu, used));
    return fmt::format("user {} has a cap of {}; running jobs use {} and the job needs {}",
                       snapshot_.users[job_.user].name, DescribeAmount(snapshot_, kGpu, cap),
                       DescribeAmount(snapshot_, kGpu, used),
                       DescribeAmount(snapshot_, kGpu, demand));
  }

  // Why it may not use reserved resources until their owner can start.
  std::string WhyItMayNotBorrow() const {
    if (!job_.checkpoints) return "; a job that checkpoints (checkpoint.on_stop) may use them";
    if (!SavesWhenStopped(job_))
      return fmt::format(
          "; it may not use them until then, because saving its work took {}, longer than its "
          "grace period of {}",
          Duration(job_.checkpoint_cost_ms), Duration(job_.grace_ms));
    if (!job_.preemptible) return "; a job that is preemptible may use them until then";
    return fmt::format("; it has made room for such jobs {}, and does not have to again",
                       Counted(job_.reservation_yields, "time"));
  }

  // How many workers fit now and, if none fits, what the nodes lack.
  std::string RoomNow() const {
    int64_t fit = 0;
    std::vector<std::string> with_room, short_of;
    for (const NodeSet& tier : view_.Tiers(job_.request, job_.checkpoints))
      for (int node = tier.Next(0); node >= 0; node = tier.Next(node + 1)) {
        const Node& facts = snapshot_.nodes[node];
        if (facts.state != NodeState::kReady) continue;
        const int count = view_.Count(request_, node, Room::kNow, false);
        fit += count;
        if (count > 0)
          with_room.push_back(fmt::format("{} on {}", count, facts.name));
        else
          short_of.push_back(Lack(node));
      }
    std::string why = fmt::format("needs {}; room now for {}", Demand(), fit);
    if (!with_room.empty()) why += fmt::format(" ({})", ListSome(with_room));
    if (fit >= job_.min_workers && request_.topology_required)
      why += fmt::format(", but not within one {}", request_.topology_level);
    else if (fit >= job_.min_workers)
      why += ", but jobs ahead of it are waiting for it";
    else if (!short_of.empty())
      why += fmt::format("; {}", ListSome(short_of));
    if (const std::vector<std::string> closed = OutOfService(); !closed.empty())
      why += fmt::format("; {}", ListSome(closed));
    return why;
  }

  bool AvoidsForItself(const Node& node) const {
    return AvoidsUntil(job_) > snapshot_.now &&
           std::ranges::binary_search(job_.failed_on, node.name);
  }
  // Null if other jobs of its user do not fail there.
  const FailingNode* AvoidsForItsUser(const Node& node) const {
    return cluster::AvoidsForItsUser(snapshot_.users[job_.user].failing_on, job_, node.name,
                                     snapshot_.now);
  }

  // Of a node that does not match its request.
  std::string WhyUnused(const Node& node) const {
    if (AvoidsForItself(node))
      return fmt::format("is avoided for another {}: the job failed there soon after its start",
                         Duration(AvoidsUntil(job_) - snapshot_.now));
    if (const FailingNode* failing = AvoidsForItsUser(node))
      return fmt::format(
          "is avoided for another {}: {} of user {} failed there soon after their start, and none "
          "has survived",
          Duration(AvoidsUntil(job_, *failing) - snapshot_.now), Counted(failing->jobs, "job"),
          snapshot_.users[job_.user].name);
    return "is excluded by the job (constraints.exclude_nodes)";
  }

  // Nodes that it could use if they were in service, and that it must not use: "own-3 is cordoned".
  std::vector<std::string> OutOfService() const {
    std::vector<std::string> closed;
    for (const Node& node : snapshot_.nodes) {
      const bool missed = IsMissed(snapshot_, node);
      if ((!IsThere(node.state) && !missed) || !HasAll(node.labels, request_.required)) continue;
      const bool is_closed =
          node.state == NodeState::kCordoned || node.state == NodeState::kDraining;
      // One on which its user's jobs fail may have been closed for that reason.
      if (!Matches(node, request_) && !(is_closed && AvoidsForItsUser(node)))
        closed.push_back(fmt::format("{} {}", node.name, WhyUnused(node)));
      else if (missed)
        closed.push_back(fmt::format("{} is gone", node.name));
      else if (is_closed)
        closed.push_back(
            fmt::format("{} is {}{}", node.name,
                        node.state == NodeState::kCordoned ? "cordoned" : "being drained",
                        node.reason.empty() ? "" : fmt::format(" ({})", node.reason)));
    }
    return closed;
  }

  // "own-2 has 3 of 8 GPUs free"
  std::string Lack(int node) const {
    const Node& facts = snapshot_.nodes[node];
    const Resources free = view_.Free(node, Room::kNow);
    for (const int kind : {kGpu, kCpu, kMemory, 3, 4, 5, 6, 7}) {
      if (free[kind] >= request_.per_worker[kind]) continue;
      const double unit = kind == kCpu ? 1000 : kind == kMemory ? 1024 : 1;
      return fmt::format("{} has {} of {} free", facts.name,
                         static_cast<double>(std::max<int64_t>(free[kind], 0)) / unit,
                         DescribeAmount(snapshot_, kind, facts.capacity[kind]));
    }
    return fmt::format("{} is reserved for other jobs", facts.name);
  }

  std::string Stopping() const {
    std::vector<std::string> for_it, stopping;
    for (const Job& job : snapshot_.jobs) {
      if (job.state != JobState::kStopping && job.state != JobState::kResizing) continue;
      stopping.push_back(std::to_string(job.id));
      if (job.stopping_for == job_.id) for_it.push_back(stopping.back());
    }
    if (!for_it.empty()) stopping = for_it;
    if (stopping.empty()) return "other jobs are about to be stopped for it";
    return fmt::format("waiting for {} {} to save and stop", stopping.size() == 1 ? "job" : "jobs",
                       Enumerated(stopping));
  }

  std::string Booting() const {
    TimeMs first = kNever, last = 0;
    for (const Node& node : snapshot_.nodes)
      if (node.state == NodeState::kBooting && node.until != kNever && Matches(node, request_)) {
        first = std::min(first, node.until);
        last = std::max(last, node.until);
      }
    if (last <= snapshot_.now) return "nodes for it are being bought";
    const std::string from = Duration(std::max<TimeMs>(first - snapshot_.now, 0)),
                      to = Duration(last - snapshot_.now);
    return fmt::format(
        "nodes for it are booting and will be ready in {}; it starts earlier if running jobs make "
        "room before that",
        from == to ? to : from + " to " + to);
  }

  const Snapshot& snapshot_;
  const Job& job_;
  const WorkerRequest& request_;
  ClusterView view_;
  Quota quota_;
};

}  // namespace

std::string ListSome(const std::vector<std::string>& names) {
  std::string text;
  for (size_t at = 0; at < std::min(names.size(), kMostListed); ++at)
    text += (at == 0 ? "" : ", ") + names[at];
  if (names.size() > kMostListed) text += fmt::format(" and {} more", names.size() - kMostListed);
  return text;
}

std::string WhyItWaits(const Snapshot& snapshot, const Wait& wait) {
  const Job* job = snapshot.Find(wait.job);
  CHECK(job != nullptr);
  return Reasons(snapshot, *job).Sentence(wait);
}

}  // namespace renzan::cluster
