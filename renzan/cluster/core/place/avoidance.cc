#include "renzan/cluster/core/place/avoidance.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster {
namespace {

std::set<std::string> NodesThere(const Snapshot& snapshot) {
  std::set<std::string> names;
  for (const Node& node : snapshot.nodes)
    if (node.state != NodeState::kGone) names.insert(node.name);
  return names;
}

}  // namespace

Snapshot InService(Snapshot snapshot) {
  std::vector<int> staying(snapshot.pools.size()), cordoned(snapshot.pools.size());
  for (Node& node : snapshot.nodes) {
    if (TakesWork(node.state)) {
      if (node.pool >= 0) ++staying[node.pool];
      continue;
    }
    if (node.pool >= 0) cordoned[node.pool] += node.state == NodeState::kCordoned;
    node.state = NodeState::kGone;
    node.pool = -1;
  }
  for (size_t pool = 0; pool < staying.size(); ++pool) {
    Pool& facts = snapshot.pools[pool];
    // No other node is bought in place of one that is cordoned.
    const int most = facts.max_nodes - cordoned[pool];
    facts.max_nodes = IsScaled(facts) ? std::max(staying[pool], most) : staying[pool];
    facts.min_nodes = std::min(facts.min_nodes, facts.max_nodes);
  }
  return snapshot;
}

namespace {

// Whether the job can run without its request's excluded nodes. Jobs with equal needs share
// answers.
class CanRun {
 public:
  explicit CanRun(const Snapshot& snapshot) : in_service_(InService(snapshot)) {}

  bool operator()(const Job& job, const WorkerRequest& request) {
    Job avoiding = job;
    avoiding.request = in_service_.InternRequest(request);
    const auto [at, is_new] =
        known_.try_emplace({avoiding.request, job.min_workers, job.queue, job.user, job.checkpoints,
                            job.preemptible, job.quota_exempt, job.state == JobState::kPending},
                           false);
    if (is_new)
      at->second = WhyInfeasible(in_service_, avoiding).empty() ||
                   // It runs, although it could start nowhere, because its quota is smaller now:
                   // the nodes on which it failed would not change that.
                   (job.state != JobState::kPending && !WhyInfeasible(in_service_, job).empty());
    return at->second;
  }

 private:
  Snapshot in_service_;
  std::map<std::tuple<int, int, int, int, bool, bool, bool, bool>, bool> known_;
};

bool AvoidsWhereItFailed(const Job& job, TimeMs now) {
  return !job.failed_on.empty() && (job.state != JobState::kPending || AvoidsUntil(job) > now);
}

}  // namespace

const FailingNode* AvoidsForItsUser(const std::vector<FailingNode>& failing_on, const Job& job,
                                    const std::string& node, TimeMs now) {
  for (const FailingNode& failing : failing_on)
    if (failing.node == node) return AvoidsUntil(job, failing) > now ? &failing : nullptr;
  return nullptr;
}

TimeMs NextEndOfAvoidance(const Snapshot& snapshot, const Job& job) {
  TimeMs next = kNever;
  const auto consider = [&](TimeMs until) {
    if (until > snapshot.now) next = std::min(next, until);
  };
  if (!job.failed_on.empty()) consider(AvoidsUntil(job));
  for (const FailingNode& failing : snapshot.users[job.user].failing_on)
    consider(AvoidsUntil(job, failing));
  return next;
}

bool HasAvoidance(const Snapshot& snapshot) {
  const auto some_avoid = [&](const User& user) {
    return std::ranges::any_of(user.failing_on, [&](const FailingNode& failing) {
      return failing.latest + kAvoidMs > snapshot.now;
    });
  };
  return std::ranges::any_of(snapshot.users, some_avoid) ||
         std::ranges::any_of(snapshot.jobs, [](const Job& job) { return !job.failed_on.empty(); });
}

Snapshot WithAvoidance(Snapshot snapshot) {
  if (!HasAvoidance(snapshot)) return snapshot;
  const std::set<std::string> there = NodesThere(snapshot);
  CanRun can_run(snapshot);
  for (Job& job : snapshot.jobs) {
    const std::vector<FailingNode>& failing_on = snapshot.users[job.user].failing_on;
    if (job.failed_on.empty() && failing_on.empty()) continue;
    const WorkerRequest asked = snapshot.worker_requests[job.request];
    std::set<std::string> own(asked.excluded_nodes.begin(), asked.excluded_nodes.end());
    if (AvoidsWhereItFailed(job, snapshot.now))
      std::set_intersection(job.failed_on.begin(), job.failed_on.end(), there.begin(), there.end(),
                            std::inserter(own, own.end()));
    std::set<std::string> all = own;
    for (const FailingNode& failing : failing_on)
      if (AvoidsUntil(job, failing) > snapshot.now && there.contains(failing.node))
        all.insert(failing.node);
    // Where it failed itself says more about it than where others did.
    for (const std::set<std::string>* excluded : {&all, &own}) {
      if (excluded->size() == asked.excluded_nodes.size()) break;
      WorkerRequest request = asked;
      request.excluded_nodes.assign(excluded->begin(), excluded->end());
      if (!can_run(job, request)) continue;
      job.request = snapshot.InternRequest(request);
      break;
    }
  }
  return snapshot;
}

}  // namespace renzan::cluster
