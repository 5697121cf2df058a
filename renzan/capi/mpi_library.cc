#include "renzan/capi/mpi_library.h"

#include <dlfcn.h>

#include "renzan/capi/plugin.h"

namespace renzan::capi {
namespace {

using MakeMpi = Communicator* (*)(const Rendezvous*, double);

MakeMpi Load() {
  // Open MPI loads its components later, which need its symbols.
  dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  return reinterpret_cast<MakeMpi>(
      LoadFromPlugin({.file = "librenzan_mpi.so",
                      .build = "renzan_mpi_build",
                      .code = ErrorCode::kUnavailable,
                      .what = "backend mpi",
                      .advice = "install Open MPI 4 (Debian: openmpi-bin), and both libraries from "
                                "the same build; or use backend gloo"},
                     "renzan_make_mpi_communicator"));
}

}  // namespace

std::unique_ptr<Communicator> MakeMpiCommunicatorFromLibrary(const Rendezvous& rendezvous,
                                                             double timeout_seconds) {
  static const MakeMpi make = Load();
  return std::unique_ptr<Communicator>(make(&rendezvous, timeout_seconds));
}

}  // namespace renzan::capi
