#pragma once

// Creates the available communicators. MPI can be initialised only once per process.

#include <functional>
#include <memory>
#include <string_view>

#include "renzan/comm/communicator.h"
#include "renzan/comm/rendezvous.h"

namespace renzan {

// A single worker: operations only copy.
std::unique_ptr<Communicator> MakeLocalCommunicator();

// Gloo over TCP. Worker 0 listens at master_addr:master_port until all workers have connected. The
// rendezvous and each operation must finish within `timeout_seconds`. A peer's death is an Error
// only if SIGPIPE is ignored or blocked, in this thread now and in those that call later.
std::unique_ptr<Communicator> MakeGlooCommunicator(const Rendezvous& rendezvous,
                                                   double timeout_seconds);

// The workers started by one mpirun (or srun with PMIx). Each operation must finish within
// `timeout_seconds`.
std::unique_ptr<Communicator> MakeMpiCommunicator(const Rendezvous& rendezvous,
                                                  double timeout_seconds);

using MakeFunction = std::function<std::unique_ptr<Communicator>(const Rendezvous& rendezvous,
                                                                 double timeout_seconds)>;

// `backend` is "local", "gloo", "mpi" or "auto": local for one worker, mpi for workers that mpirun
// started, gloo otherwise. Throws kConfig for another name, or "local" with more than one worker.
std::unique_ptr<Communicator> MakeCommunicator(std::string_view backend,
                                               const Rendezvous& rendezvous, double timeout_seconds,
                                               const MakeFunction& make_mpi = MakeMpiCommunicator);

}  // namespace renzan
