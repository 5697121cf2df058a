#pragma once

// Backend mpi of librenzan.so: loads librenzan_mpi.so beside it, which needs the system's Open MPI,
// on first use.

#include <memory>

#include "renzan/comm/communicator.h"
#include "renzan/comm/rendezvous.h"

namespace renzan::capi {

// Throws an Error (kUnavailable) if it cannot be loaded, and what MakeMpiCommunicator() throws.
std::unique_ptr<Communicator> MakeMpiCommunicatorFromLibrary(const Rendezvous& rendezvous,
                                                             double timeout_seconds);

}  // namespace renzan::capi
