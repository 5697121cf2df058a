#include "renzan/capi/plugin.h"

#include <dlfcn.h>

#include "renzan/base/error.h"

namespace renzan::capi {

void* LoadFromPlugin(const std::string& file, const char* function, const std::string& what,
                     const std::string& advice) {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadFromPlugin), &here) == 0 ||
      here.dli_fname == nullptr)
    Fail(ErrorCode::kUnavailable, "{}: cannot find where librenzan.so lies", what);
  const std::string path(here.dli_fname);
  const std::string library = path.substr(0, path.find_last_of('/') + 1) + file;
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) Fail(ErrorCode::kUnavailable, "{}: {}: {}", what, dlerror(), advice);
  void* const found = dlsym(handle, function);
  if (found == nullptr) Fail(ErrorCode::kUnavailable, "{}: {} is damaged", what, library);
  return found;
}

}  // namespace renzan::capi
