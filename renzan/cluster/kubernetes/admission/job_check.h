#pragma once

// What a user who creates or edits a GangJob is told. Only early feedback: the controller decides,
// and it holds jobs that get past this check.
//
// A job is refused for errors in the object itself, and for what its queue or the ClusterPolicy
// forbids its submitter or namespace. Anything that depends on other objects seen by this replica,
// which may lag behind the request (a job and its queue are often applied together), is only a
// warning.

#include <string>
#include <vector>

#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster::kubernetes {

struct JobVerdict {
  std::string refusal;     // why not; empty: it is allowed
  bool forbidden = false;  // it was refused for lack of rights
  bool try_again = false;  // it was refused because this replica cannot say yet
  std::vector<std::string> warnings;
};

// `before`: the previous object, with its status; null: the job is new. `requester`
// sent it.
JobVerdict CheckJob(const GangJob& job, const GangJob* before, const Requester& requester,
                    ClusterView& cluster, TimeMs now);

}  // namespace renzan::cluster::kubernetes
