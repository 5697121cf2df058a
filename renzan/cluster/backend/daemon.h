#pragma once

// This machine's daemon, or another one's over TCP.

#include <memory>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/client/client.h"

namespace renzan::cluster {

// `user`: the caller's name.
std::unique_ptr<Backend> MakeDaemonBackend(client::Endpoint endpoint, std::string user);

}  // namespace renzan::cluster
