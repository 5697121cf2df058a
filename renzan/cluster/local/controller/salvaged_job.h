#pragma once

// A job that has not ended and whose record is damaged: it is ended, because nothing says any more
// how it is to be started again, and the others go on without it.

#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

// Its next record. If an attempt of it has not been recorded as ended, the job is stopping, on the
// nodes where the attempt's plan says that its workers are: it holds their room until they have
// ended. Otherwise it has failed, or is done if they had ended by themselves with exit status 0. A
// user is known as its owner if the record or a plan says so. Workers without a readable plan are
// told to stop, and the log says so; throws Error if that is not possible.
JobRecord SalvageJob(const DamagedJob& damaged, Agent& agent, const JobDirectories& directories,
                     TimeMs now);

// Its grace period is that of the plan if its specification cannot be read.
void TakeGraceFromPlan(const JobRecord& record, Agent& agent, const JobDirectories& directories,
                       spec::JobSpec& spec);

// What its user is told once it has ended.
std::string EndOfDamaged(const JobRecord& record);

}  // namespace renzan::cluster::local
