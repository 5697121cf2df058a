#pragma once

// How workers can communicate. Sends nothing.

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

// `library` is MpiLibraryVersion(); `path` is $PATH, which is searched for mpirun.
Finding FindMpi(const std::string& library, const std::string& path);

// The interfaces that Gloo can use. `chosen` is $GLOO_SOCKET_IFNAME, or empty.
Finding FindGlooInterface(const std::string& chosen);

}  // namespace renzan
