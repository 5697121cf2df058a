#pragma once

// The environment of one worker: the variables of a login, those of its submitter, those of the job
// and those of the launch contract. Later ones take precedence.

#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {

// The variable that identifies every process of an attempt, even detached ones. Its value is the
// attempt's directory.
inline constexpr const char* kAttemptMark = "RENZAN_ATTEMPT_DIR";

// "NAME=value", sorted by name. `exported` are the submitter's.
//
// A gang of one gets no RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT: a program that starts its own workers (`renzan train --workers 4`, mpirun) would
// take them for a launcher's and train alone. A job that needs them can set them.
std::vector<std::string> WorkerEnvironment(const AttemptPlan& plan, int rank,
                                           const std::string& attempt_directory, int master_port,
                                           const JobUser& user,
                                           const std::map<std::string, std::string>& exported);

// Of workers that can open no devices but their attempt's: CUDA numbers these from 0.
AttemptPlan WithOwnDevicesOnly(AttemptPlan plan);

}  // namespace renzan::cluster::local
