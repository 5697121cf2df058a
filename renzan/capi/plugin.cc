#include "renzan/capi/plugin.h"

#include <dlfcn.h>

#include <string>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"

namespace renzan::capi {

void* LoadFromPlugin(const Plugin& plugin, const char* function) {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadFromPlugin), &here) == 0 ||
      here.dli_fname == nullptr)
    Fail(plugin.code, "{}: cannot find the directory of librenzan.so", plugin.what);
  const std::string own_path(here.dli_fname);
  const std::string path = own_path.substr(0, own_path.find_last_of('/') + 1) + plugin.file;
  return FunctionOfPlugin(LoadPlugin(plugin, path, BuildId(), "librenzan.so"), function);
}

}  // namespace renzan::capi
