#pragma once

// Which of this host's addresses the other workers can reach. Thread-safe.

#include <optional>
#include <string>

#include "renzan/comm/rendezvous.h"

namespace renzan {

// The numeric address from which the kernel would send to worker 0. Throws Error (kUnavailable) if
// its host name cannot be resolved or reached.
std::string LocalAddressTowards(const Rendezvous& rendezvous);

// The numeric address of this machine on which worker 0 listens so that others reach it as `host`
// (MASTER_ADDR). Nothing if `host` does not resolve to a reachable address of this machine: it may
// be translated on the way (a service address), or be a loopback address here and another one
// elsewhere (Debian's 127.0.1.1).
std::optional<std::string> ListenAddress(const std::string& host);

}  // namespace renzan
