#pragma once

// A worker's rank, the number of workers and the address of worker 0, from the variables that
// launchers set: torchrun's (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; also set by
// hand), Open MPI's (mpirun) and Slurm's (srun). Pure functions of the given environment.

#include <functional>
#include <optional>
#include <string>

namespace renzan {

struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the workers of this host
  // Where worker 0 listens. Empty if unknown; every backend but MPI needs it.
  std::string master_addr;
  int master_port = 29500;  // torchrun's default
  // GLOO_SOCKET_IFNAME: the network interface to use; empty means the one that reaches worker 0.
  std::string network_interface;
  bool under_mpirun = false;
};

// Returns the value of a variable, or null.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// Nothing if no launcher's variables are set: a program started by hand as a single worker.
// Malformed or contradictory values are an Error (kUsage) that names the variable.
std::optional<Rendezvous> RendezvousFromEnvironment(const EnvironmentLookup& lookup);

// "localhost", 127.x.y.z or ::1.
bool IsLoopback(const std::string& host);

}  // namespace renzan
