#pragma once

// What the GangJobs of a namespace may ask for: spec.limits of the ClusterPolicy. A user is a
// namespace here; nothing that a user writes decides about its rights.

#include <cstdint>
#include <set>
#include <string>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::kubernetes {

// The defaults are those of a cluster without a ClusterPolicy.
struct NamespaceLimits {
  int64_t max_priority = 100;
  int64_t max_pending_jobs = 10'000;  // of one namespace
  bool not_preemptible = true;        // they may have preemptible: false
  bool grand_challenge = false;       // and grandChallenge: true
  std::set<std::string> exempt;       // namespaces that nothing of this binds

  bool operator==(const NamespaceLimits&) const = default;
};

// Why the namespace may not have this job, in one line; empty: it may. `pending_jobs`: those of the
// namespace that wait already, without this one. Pure: for the controller, which holds such a job,
// and for the check at admission, which refuses it.
std::string WhyForbidden(const NamespaceLimits& limits, const std::string& ns,
                         const spec::JobSpec& job, int64_t pending_jobs);

}  // namespace renzan::cluster::kubernetes
