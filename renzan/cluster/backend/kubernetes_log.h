#pragma once

// A worker's output on Kubernetes, read from its pods as long as they exist.

#include <functional>
#include <string>
#include <string_view>

#include "renzan/cluster/backend/absence.h"
#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/pod_logs.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster {

// Passes on what LogQuery asks for. With `follow`, waits for pods that have not started and, if no
// attempt was given, continues with the next one; without LogQuery::tail it also waits for a minute
// for a server that is away, and goes on where it was. `read_job` returns the job as it is now.
// Throws Error kNoInput for a worker or attempt that does not exist, or whose pod or output is
// gone.
void ReadWorkerLog(kubernetes::Api& api, kubernetes::PodLogs& logs,
                   const std::function<kubernetes::GangJob()>& read_job, const LogQuery& query,
                   const std::function<void(std::string_view piece)>& take, const Waiting& waiting);

}  // namespace renzan::cluster
