#pragma once

// Parts of librenzan.so that need libraries which not every machine has (base/plugin.h). They are
// in its directory.

#include "renzan/base/plugin.h"

namespace renzan::capi {

// LoadPlugin() beside librenzan.so, and its function of that name.
void* LoadFromPlugin(const Plugin& plugin, const char* function);

}  // namespace renzan::capi
