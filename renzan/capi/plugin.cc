#include "renzan/capi/plugin.h"

#include <dlfcn.h>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"

namespace renzan::capi {

void* LoadFromPlugin(const std::string& file, const char* function, const std::string& what,
                     const std::string& advice) {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadFromPlugin), &here) == 0 ||
      here.dli_fname == nullptr)
    Fail(ErrorCode::kUnavailable, "{}: cannot find the directory of librenzan.so", what);
  const std::string path(here.dli_fname);
  const std::string library = path.substr(0, path.find_last_of('/') + 1) + file;
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) Fail(ErrorCode::kUnavailable, "{}: {}: {}", what, dlerror(), advice);
  const auto build =
      reinterpret_cast<decltype(&renzan_plugin_build)>(dlsym(handle, "renzan_plugin_build"));
  const std::string theirs = build == nullptr ? "unknown" : build();
  if (theirs != BuildId())
    Fail(ErrorCode::kUnavailable,
         "{}: {} is of another build than librenzan.so ({}, not {}): install both from the same "
         "build",
         what, library, theirs, BuildId());
  void* const found = dlsym(handle, function);
  if (found == nullptr) Fail(ErrorCode::kUnavailable, "{}: {} is damaged", what, library);
  return found;
}

}  // namespace renzan::capi
