// Applies changes of users, queues and the ClusterPolicy to the facts about jobs and nodes.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"

namespace renzan::cluster::kubernetes {

void Controller::SpecifyAll() {
  for (auto& [id, live] : runner_.live())
    // An edited job changes when its attempt ends, and an ended one never does.
    if (!live.edited && !HasEnded(live.object.status.state))
      Specify(live.object, inventory_, snapshot_, *snapshot_.Find(id));
  needs_scheduling_ = true;
}

void Controller::ApplyPolicy() {
  const ClusterPolicy& policy = policies_.current();
  kubernetes::ApplyPolicy(policy, inventory_, Now(), snapshot_);
  pools_.SetBudget(policy.budget_per_hour);
  SpecifyAll();
}

void Controller::ApplyQueues() {
  queues_.SetParentFaults(SetQueues(queues_.holding(), snapshot_));
  SpecifyAll();
}

void Controller::ApplyEdits() {
  for (auto& [id, live] : runner_.live())
    if (live.workers.empty() && !HasEnded(live.object.status.state) &&
        std::exchange(live.edited, false))
      Specify(live.object, inventory_, snapshot_, *snapshot_.Find(id));
}

void Controller::DropUnused() {
  inventory_.DropFilters([&](const NodeFilter& filter, const std::string& label) {
    return std::any_of(snapshot_.jobs.begin(), snapshot_.jobs.end(), [&](const Job& job) {
      // An edited job may still have workers chosen by an earlier filter.
      return runner_.live().at(job.id).object.node_filter == filter ||
             snapshot_.worker_requests[job.request].required.contains(label);
    });
  });
}

void Controller::AskForRights() {
  if (!options_.rights_by_namespace) return;
  std::set<std::string> namespaces;
  for (const auto& [id, live] : runner_.live())
    if (live.object.status.state == RecordState::kPending) namespaces.insert(live.object.ns);
  needs_scheduling_ |= rights_.Refresh(namespaces, requests_, Now());
}

// In order of submission: jobs submitted beyond the limit wait for the others.
void Controller::ApplyLimits() {
  const NamespaceLimits& limits = policies_.current().limits;
  std::map<int, int64_t> pending;  // by user
  for (Job& job : snapshot_.jobs) {
    LiveGang& live = runner_.live().at(job.id);
    if (job.held == live.forbidden) job.held.clear();
    live.forbidden.clear();
    if (job.state != JobState::kPending || !job.held.empty()) continue;
    spec::Submitter submitter = SubmitterOf(limits, live.object.ns);
    submitter.checked = queues_.WasSubmitterChecked(live.object);
    live.forbidden = job.held = rights_.WhyNot(live.object.ns);
    if (!job.held.empty()) continue;
    live.forbidden = job.held = WhyItMayNotStart(live.object, &snapshot_.queues[job.queue],
                                                 snapshot_, limits, submitter, pending[job.user]);
    pending[job.user] += job.held.empty() ? 1 : 0;
  }
}

}  // namespace renzan::cluster::kubernetes
