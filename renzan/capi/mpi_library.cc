#include "renzan/capi/mpi_library.h"

#include <dlfcn.h>

#include <string>

#include "renzan/base/error.h"

namespace renzan::capi {
namespace {

using MakeMpi = Communicator* (*)(const Rendezvous*, double);

MakeMpi Load() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&Load), &here) == 0 || here.dli_fname == nullptr)
    Fail(ErrorCode::kUnavailable, "backend mpi: cannot find where librenzan.so lies");
  const std::string path(here.dli_fname);
  const std::string library = path.substr(0, path.find_last_of('/') + 1) + "librenzan_mpi.so";
  // Open MPI loads its components later, which need its symbols.
  dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    Fail(ErrorCode::kUnavailable,
         "backend mpi: {}: install Open MPI 4 (Debian: openmpi-bin) or use backend gloo",
         dlerror());
  void* const make = dlsym(handle, "renzan_make_mpi_communicator");
  if (make == nullptr) Fail(ErrorCode::kUnavailable, "backend mpi: {} is damaged", library);
  return reinterpret_cast<MakeMpi>(make);
}

}  // namespace

std::unique_ptr<Communicator> MakeMpiCommunicatorFromLibrary(const Rendezvous& rendezvous,
                                                             double timeout_seconds) {
  static const MakeMpi make = Load();
  return std::unique_ptr<Communicator>(make(&rendezvous, timeout_seconds));
}

}  // namespace renzan::capi
