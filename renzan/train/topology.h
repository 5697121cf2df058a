#pragma once

// Which workers share a host. Every rank calls it.

#include "renzan/comm/communicator.h"
#include "renzan/plan/planner.h"

namespace renzan {

// Neighbouring ranks with the same host name are on one host.
Topology TopologyOf(Communicator& comm);

}  // namespace renzan
