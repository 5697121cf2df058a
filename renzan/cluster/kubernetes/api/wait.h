#pragma once

#include <stop_token>

namespace renzan::cluster::kubernetes {

// Sleeps that long, or until a stop is requested.
void WaitFor(double seconds, const std::stop_token& stop);

}  // namespace renzan::cluster::kubernetes
