#pragma once

// Which of this host's addresses the other workers can reach. Thread-safe.

#include <string>

#include "renzan/comm/rendezvous.h"

namespace renzan {

// The address from which the kernel would send to worker 0, as digits. A host name that cannot be
// resolved or reached is an Error (kUnavailable).
std::string LocalAddressTowards(const Rendezvous& rendezvous);

}  // namespace renzan
