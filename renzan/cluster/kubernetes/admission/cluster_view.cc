#include "renzan/cluster/kubernetes/admission/cluster_view.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

void ClusterView::Take(Source source, const WatchChange& change, TimeMs now) {
  using Type = WatchChange::Type;
  if (change.type == Type::kRelisted) return;
  const std::lock_guard lock(mutex_);
  if (change.type == Type::kSynced) {
    for (const Json& object : *change.object) Put(source, object, /*removed=*/false, now);
    synced_.insert(source);
  } else {
    Put(source, *change.object, change.type == Type::kDeleted, now);
  }
  if (source == Source::kQueues) SetQueues(queues_, snapshot_);
  inventory_.Refresh(inventory_.TakeTouched(), no_pods_, [](const Pod&) { return false; });
  inventory_.TakeLost();
}

void ClusterView::Put(Source source, const Json& object, bool removed, TimeMs now) {
  if (source == Source::kQueues && removed)
    queues_.erase(TextAt(object, {"metadata", "name"}));
  else if (source == Source::kQueues)
    queues_[TextAt(object, {"metadata", "name"})] = HoldingQueueSpec(object);
  else if (source == Source::kPools && removed)
    snapshot_.pools[inventory_.PoolNamed(TextAt(object, {"metadata", "name"}))] = {
        .name = TextAt(object, {"metadata", "name"})};
  else if (source == Source::kPools)
    PutPool(NodePoolFrom(std::make_shared<const Json>(object)), {}, 0, inventory_, snapshot_);
  else if (source == Source::kNodes && removed)
    inventory_.Remove(TextAt(object, {"metadata", "name"}), now);
  else if (source == Source::kNodes)
    inventory_.Put(NodeFrom(object), now);
}

void ClusterView::TakePolicy(const WatchChange& change, TimeMs now) {
  using Type = WatchChange::Type;
  if (change.type == Type::kRelisted) return;
  const std::lock_guard lock(mutex_);
  if (change.type == Type::kSynced) {
    policies_listed_ = true;
    policy_.emplace();
    for (const Json& object : *change.object)
      if (!PutPolicy(object, /*removed=*/false)) policy_.reset();
  } else {
    PutPolicy(*change.object, change.type == Type::kDeleted);
  }
  if (policy_) inventory_.SetTopology(policy_->topology, now);
}

bool ClusterView::PutPolicy(const Json& object, bool removed) {
  if (TextAt(object, {"metadata", "name"}) != kPolicyName) return true;
  try {
    policy_ = removed ? ClusterPolicy{} : ClusterPolicyFrom(At(object, {"spec"}));
    return true;
  } catch (const Error&) {
    return false;  // the controller says so in its status, and keeps using the previous one
  }
}

bool ClusterView::KnowsRights() {
  const std::lock_guard lock(mutex_);
  return synced_.contains(Source::kQueues) && policies_listed_;
}

std::string ClusterView::WhyItIsForbidden(const GangJob& job, const Requester* requester) {
  const std::lock_guard lock(mutex_);
  const NamespaceLimits limits = policy_ ? policy_->limits : NamespaceLimits::None();
  spec::Submitter submitter = SubmitterOf(limits, job.ns);
  submitter.checked =
      requester == nullptr ? spec::Submitter::Checked::kYes : spec::Submitter::Checked::kNo;
  if (requester != nullptr) {
    submitter.user = requester->user;
    submitter.groups = requester->groups;
  }
  return WhyItMayNotStart(job, QueueOf(job, snapshot_), snapshot_, limits, submitter,
                          /*pending_jobs=*/0);
}

std::string ClusterView::WhyItCannotRun(const GangJob& object, TimeMs now) {
  const std::lock_guard lock(mutex_);
  if (!synced_.contains(Source::kNodes) || !synced_.contains(Source::kQueues)) return "";
  snapshot_.now = now;
  Job job;
  const size_t queues = snapshot_.queues.size();
  Specify(object, inventory_, snapshot_, job);
  if (policy_) {
    User& user = snapshot_.users[job.user];
    if (const auto cap = policy_->caps.find(object.ns); cap != policy_->caps.end())
      user.max_gpus = cap->second;
    if (const auto at = policy_->overrides.find(object.ns); at != policy_->overrides.end())
      user.quota_overrides = at->second;
  }
  std::string why = WhyInfeasible(snapshot_, job);
  snapshot_.queues.resize(queues);
  snapshot_.users.clear();
  snapshot_.worker_requests.clear();
  inventory_.DropFilters([](const NodeFilter&, const std::string&) { return false; });
  return why;
}

}  // namespace renzan::cluster::kubernetes
