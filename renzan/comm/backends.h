#pragma once

// Creates the available communicators. MPI can be initialised only once per process.

#include <memory>
#include <string_view>

#include "renzan/comm/communicator.h"
#include "renzan/comm/rendezvous.h"

namespace renzan {

// A single worker: operations only copy.
std::unique_ptr<Communicator> MakeLocalCommunicator();

// Gloo over TCP. Worker 0 listens at master_addr:master_port until all workers have connected. The
// rendezvous and each operation must finish within `timeout_seconds`. Ignores SIGPIPE in this
// process, so that a peer's death is an Error.
std::unique_ptr<Communicator> MakeGlooCommunicator(const Rendezvous& rendezvous,
                                                   double timeout_seconds);

// The workers started by one mpirun (or srun with PMIx). Each operation must finish within
// `timeout_seconds`.
std::unique_ptr<Communicator> MakeMpiCommunicator(const Rendezvous& rendezvous,
                                                  double timeout_seconds);

// `backend` is "local", "gloo", "mpi" or "auto": local for one worker, mpi for workers that mpirun
// started, gloo otherwise. Throws kConfig for another name, or "local" with more than one worker.
std::unique_ptr<Communicator> MakeCommunicator(std::string_view backend,
                                               const Rendezvous& rendezvous,
                                               double timeout_seconds);

}  // namespace renzan
