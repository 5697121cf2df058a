// librenzan_mpi.so.

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/comm/backends.h"

extern "C" __attribute__((visibility("default"))) renzan::Communicator*
renzan_make_mpi_communicator(const renzan::Rendezvous* rendezvous, double timeout_seconds) {
  renzan::ThrowFailedChecks();
  return renzan::MakeMpiCommunicator(*rendezvous, timeout_seconds).release();
}

extern "C" __attribute__((visibility("default"))) const char* renzan_mpi_build() {
  return renzan::BuildId();
}
