#pragma once

// What the GangJobs of a namespace may ask for: spec.limits of the ClusterPolicy. A user is a
// namespace here; nothing that users write affects their rights.

#include <cstdint>
#include <set>
#include <string>

#include "renzan/cluster/spec/job_spec.h"
#include "renzan/cluster/spec/queue_rights.h"

namespace renzan::cluster::kubernetes {

// The defaults are those of a cluster without a ClusterPolicy.
struct NamespaceLimits {
  int64_t max_priority = 0;           // in queues that say nothing about it
  int64_t max_pending_jobs = 10'000;  // of one namespace
  bool not_preemptible = true;        // whether jobs may have preemptible: false
  bool grand_challenge = false;       // whether jobs may have grandChallenge: true
  std::set<std::string> exempt;       // namespaces that nothing of this binds

  static NamespaceLimits None();
  bool operator==(const NamespaceLimits&) const = default;
};

// As whom queues (spec::WhyQueueRefuses) know the namespace.
spec::Submitter SubmitterOf(const NamespaceLimits& limits, const std::string& ns);

// Why the namespace may not have this job, in one line; empty: it may, as far as its queue takes
// it. `pending_jobs`: how many jobs of the namespace are already pending, without this one. Pure:
// used by the controller, which holds such a job, and by the admission check, which refuses it.
std::string WhyForbidden(const NamespaceLimits& limits, const std::string& ns,
                         const spec::JobSpec& job, int64_t pending_jobs);

}  // namespace renzan::cluster::kubernetes
