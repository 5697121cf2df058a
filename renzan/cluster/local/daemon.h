#pragma once

// The daemon of a cluster on this machine: store, agent, controller, loop and API server.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

struct DaemonOptions {
  std::string state_dir;
  std::string socket;
  spec::ClusterConfig config;
  // Of this machine (GpuNumbers()), all of whose nodes share them. Nothing: the nodes are
  // simulated.
  std::optional<std::vector<dev_t>> gpus;
  std::string supervisor;  // the program renzan-supervisor
  std::string renzan;      // this program
  // A daemon that runs as root also serves these users, and runs their jobs as them; "*": all
  // users.
  std::vector<std::string> allow_users;
  // HOST:PORT for TCP, over TLS and for users with a token; empty: no TCP.
  std::string listen;
  // The file to which cycles are recorded for replay; empty: none.
  std::string record;
  std::string program;  // as recordings name it
  int ready_fd = -1;    // gets a line, and is closed, once the daemon answers requests
};

// Creates the state directory, which other users cannot list. Whether they can reach anything in it
// is left to RunDaemon(): another daemon may still use it. Throws Error kCantCreate for a directory
// of another user.
void MakeStateDirectory(const DaemonOptions& options);

// Returns after SIGTERM, SIGINT or POST /v1/shutdown. Jobs keep running, and the next daemon with
// the same state directory finds them. Throws Error kUnavailable (a daemon is already running),
// kConfig, kData (corrupt state), kCantCreate or kIo.
//
// For a single-threaded process: it blocks signals and starts threads.
void RunDaemon(const DaemonOptions& options);

}  // namespace renzan::cluster::local
