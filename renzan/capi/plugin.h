#pragma once

// Parts of librenzan.so that need libraries which not every machine has: shared objects beside it,
// which are loaded when they are first asked for. They are of the same build, which is checked, so
// that C++ objects and exceptions may pass between them.

#include <string>

// Of each of them: BuildId().
extern "C" const char* renzan_plugin_build();

namespace renzan::capi {

// The function of that name in `file`, which lies where librenzan.so does. Throws Error
// kUnavailable, which begins with `what` and ends with `advice`.
void* LoadFromPlugin(const std::string& file, const char* function, const std::string& what,
                     const std::string& advice);

}  // namespace renzan::capi
