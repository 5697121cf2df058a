#pragma once

// The sharding plan of a run.

#include "renzan/comm/communicator.h"
#include "renzan/plan/planner.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// What the cost model needs to know about a run. `threads`: per worker.
RunCosts RunCostsOf(const RunSpec& spec, const Topology& topology, int threads);

// The plan that spec.sharding asks for. Throws kConfig, or kNoInput for a plan file.
ShardingPlan PlanOf(const RunSpec& spec, const Topology& topology, int threads);

// Rank 0's plan, given the workers' hosts and their memory; every rank calls it. Workers do not
// plan for themselves, because their processors may round costs differently. `goes_on`: the run has
// begun before, so a plan file that is missing or for another number of workers is ignored with a
// warning.
ShardingPlan AgreeOnPlan(const RunSpec& spec, Communicator& comm, int threads,
                         bool goes_on = false);

}  // namespace renzan
