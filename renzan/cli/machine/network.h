#pragma once

// How workers could meet. Nothing is sent.

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

// `library` is MpiLibraryVersion(); `path` is $PATH, where mpirun is looked for.
Finding FindMpi(const std::string& library, const std::string& path);

// The interfaces that Gloo could use. `chosen` is $GLOO_SOCKET_IFNAME, or empty.
Finding FindGlooInterface(const std::string& chosen);

}  // namespace renzan
