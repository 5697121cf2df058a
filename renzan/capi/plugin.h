#pragma once

// Parts of librenzan.so that need libraries which not every machine has: shared objects beside it,
// loaded on first use. They must be of the same build, which is checked, so that C++ objects and
// exceptions can pass between them.

#include <string>

// Each of them exports its BuildId().
extern "C" const char* renzan_plugin_build();

namespace renzan::capi {

// The function of that name in `file`, which is in the directory of librenzan.so. Throws Error
// kUnavailable, which begins with `what` and ends with `advice`.
void* LoadFromPlugin(const std::string& file, const char* function, const std::string& what,
                     const std::string& advice);

}  // namespace renzan::capi
