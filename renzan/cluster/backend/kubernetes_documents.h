#pragma once

// GangJobs and Queues as documents (backend.h). Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster {

Document JobDocument(const kubernetes::GangJob& job);

// `pods`, `events`: those of the job that still exist, as the server lists them.
Document ShownJobDocument(const kubernetes::GangJob& job, const nlohmann::json& pods,
                          const nlohmann::json& events, TimeMs now);

Document UsageDocument(const std::vector<kubernetes::GangJob>& jobs, TimeMs now);

// What namespaces have used lately of Queues with fair share, as their statuses say.
Document FairSharesDocument(const nlohmann::json& queues, TimeMs now);

}  // namespace renzan::cluster
