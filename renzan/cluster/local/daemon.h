#pragma once

// The daemon of a cluster on this machine: store, agent, loop and API server put together.

#include <string>
#include <vector>

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

struct DaemonOptions {
  std::string state_dir;
  std::string socket;
  spec::ClusterConfig config;
  std::string supervisor;  // the program renzan-supervisor
  // A daemon of root serves these users too, and runs their jobs as them; "*": everyone.
  std::vector<std::string> allow_users;
  // HOST:PORT for TCP with the token in STATE/token; empty: none.
  std::string listen;
  int ready_fd = -1;  // a line is written here, and it is closed, once requests are answered
};

// Makes the state directory, closed to other users except that those who are served cycle through
// to their jobs' directories. Refuses one of another user (kCantCreate) before anything is in it.
void MakeStateDirectory(const DaemonOptions& options);

// Returns when it has been told to end (SIGTERM, SIGINT, POST /v1/shutdown). Jobs go on running,
// and the next daemon with the same state directory finds them again. Throws Error: kUnavailable
// (one is running already), kConfig, kData (corrupt state), kCantCreate, kIo.
//
// For the only thread of a process: it blocks signals and starts threads.
void RunDaemon(const DaemonOptions& options);

}  // namespace renzan::cluster::local
