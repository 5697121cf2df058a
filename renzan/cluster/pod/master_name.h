#pragma once

// Waits for the host name of worker 0. A headless service publishes it only some seconds after the
// pods have started, and most programs give up at once if it does not resolve.

#include <functional>
#include <string>

#include "renzan/base/process/signals.h"

namespace renzan::cluster::pod {

// "" once the name has an address, else why it has none. May block; must not
// throw. Called on other threads.
using ResolveName = std::function<std::string(const std::string& name)>;

// Asks the name servers, as getaddrinfo() does.
std::string SystemResolve(const std::string& name);

struct MasterWait {
  double limit_seconds = 600;
  double seconds_between_lookups = 1;
};

// Returns 0 as soon as the name resolves, or immediately a SIGTERM, SIGINT or SIGHUP that arrives
// in `signals`. Logs one line if it has to wait. Throws Error kUnavailable after the limit.
int WaitForMaster(const std::string& name, const MasterWait& wait, const ResolveName& resolve,
                  const SignalQueue& signals);

}  // namespace renzan::cluster::pod
