#pragma once

#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {

RetryPolicy RetryPolicyOf(const JobSpec& spec);

}  // namespace renzan::cluster::spec
