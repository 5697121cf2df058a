#include "renzan/base/plugin.h"

#include <dlfcn.h>

#include "renzan/base/this_program.h"

namespace renzan {

std::string PathOfPlugin(const Plugin& plugin) {
  if (const auto path = InstalledFile("lib", plugin.file)) return *path;
  Fail(plugin.code, "{} is missing: {}: {}", plugin.what, WhyNotInstalled("lib", plugin.file),
       plugin.advice);
}

void* LoadPlugin(const Plugin& plugin, const std::string& path, const std::string& own_build,
                 const std::string& host) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    Fail(plugin.code, "{} cannot be loaded: {}: {}", plugin.what, ::dlerror(), plugin.advice);
  const auto build = reinterpret_cast<const char* (*)()>(::dlsym(handle, plugin.build));
  const std::string theirs = build == nullptr ? "unknown" : build();
  if (theirs != own_build)
    Fail(plugin.code, "{} is of another build than {} ({}, not {}): {}", path, host, theirs,
         own_build, plugin.advice);
  return handle;
}

void* FunctionOfPlugin(void* handle, const char* name) {
  void* const found = ::dlsym(handle, name);
  CHECK_MSG(found != nullptr, "a library of this build lacks {}", name);
  return found;
}

}  // namespace renzan
