#pragma once

// The communicators there are. MPI can be started once per process.

#include <memory>
#include <string_view>

#include "renzan/comm/communicator.h"
#include "renzan/comm/rendezvous.h"

namespace renzan {

// One worker alone: operations copy.
std::unique_ptr<Communicator> MakeLocalCommunicator();

// TCP over Gloo. Worker 0 listens at master_addr:master_port until everyone has met. Both meeting
// and each operation must be done within `timeout_seconds`. Ignores SIGPIPE in this process, so
// that a peer's death is an Error.
std::unique_ptr<Communicator> MakeGlooCommunicator(const Rendezvous& rendezvous,
                                                   double timeout_seconds);

// The workers that one mpirun (or srun with PMIx) started. Each operation must be done within
// `timeout_seconds`.
std::unique_ptr<Communicator> MakeMpiCommunicator(const Rendezvous& rendezvous,
                                                  double timeout_seconds);

// `backend` is "local", "gloo", "mpi" or "auto": local for one worker, mpi for workers that mpirun
// started, gloo otherwise. Error kConfig for another name or one that cannot carry the workers.
std::unique_ptr<Communicator> MakeCommunicator(std::string_view backend,
                                               const Rendezvous& rendezvous,
                                               double timeout_seconds);

}  // namespace renzan
