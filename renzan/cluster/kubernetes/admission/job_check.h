#pragma once

// What is said to a user who creates or edits a GangJob. Early feedback only: it is the controller
// that decides, and it holds what got past this check.
//
// Refused is what follows from the object itself, and what the ClusterPolicy forbids its namespace.
// What depends on what else this replica has seen of the cluster, which may be older than the
// request (a job and its queue are often applied together), is only a warning.

#include <string>
#include <vector>

#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster::kubernetes {

struct JobVerdict {
  std::string refusal;     // why not; empty: it is allowed
  bool forbidden = false;  // it is a matter of rights
  std::vector<std::string> warnings;
};

// `before`: as it was, with its status; null: it is new.
JobVerdict CheckJob(const GangJob& job, const GangJob* before, ClusterView& cluster, TimeMs now);

}  // namespace renzan::cluster::kubernetes
