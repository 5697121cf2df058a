#pragma once

// The environment of one worker: what a login would set, what the job asks for, and the launch
// contract, which wins over both.

#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {

// The variable that marks every process of an attempt, however far it has wandered off; its value
// is the attempt's directory.
inline constexpr const char* kAttemptMark = "RENZAN_ATTEMPT_DIR";

// "NAME=value", sorted by name. `path` and `lang` are the supervisor's own, empty if it has none.
//
// A gang of one gets no RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT: a program that starts workers of its own (`renzan train --workers 4`, mpirun) takes
// them for a launcher's and would train alone. A job that wants them can set them.
std::vector<std::string> WorkerEnvironment(const AttemptPlan& plan, int rank,
                                           const std::string& attempt_directory, int master_port,
                                           const JobUser& user, const std::string& path,
                                           const std::string& lang);

}  // namespace renzan::cluster::local
