#pragma once

// renzan bench machine --peers: the exchange between workers, transport by transport.

#include <string>
#include <vector>

namespace renzan {

struct PeersOptions {
  int workers = 2;
  // Names or addresses of machines that mpirun can start processes on; empty: this one. Workers are
  // spread evenly.
  std::vector<std::string> hosts;
  bool json = false;
};

// Measures each transport in a run of its own, and prints a table; a transport that cannot be used
// here says why. Throws kUsage if the workers cannot be spread evenly, kUnavailable if no transport
// could be measured.
void BenchPeers(const PeersOptions& options);

}  // namespace renzan
