#pragma once

// Which of this host's addresses the other workers can reach. Thread-safe.

#include <optional>
#include <string>

#include "renzan/comm/rendezvous.h"

namespace renzan {

// The address from which the kernel would send to worker 0, as digits. A host name that cannot be
// resolved or reached is an Error (kUnavailable).
std::string LocalAddressTowards(const Rendezvous& rendezvous);

// Where worker 0 listens so that others reach it as `host` (MASTER_ADDR): that address of this
// machine, as digits. Nothing where no address of that name can be told to be this machine's and
// reachable: it is translated on the way (a service's address), or the name stands for a loopback
// address here and for another one elsewhere (Debian's 127.0.1.1).
std::optional<std::string> ListenAddress(const std::string& host);

}  // namespace renzan
