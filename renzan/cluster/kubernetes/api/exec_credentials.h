#pragma once

// Credentials from a program, kept until they expire. The program runs once for all connections of
// the process, in a thread of its own: before what it said expires, and when the server refuses it.
// Nobody waits for it while there are credentials that are valid.

#include <memory>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/credentials.h"
#include "renzan/cluster/kubernetes/api/exec_config.h"
#include "renzan/cluster/kubernetes/api/exec_plugin.h"

namespace renzan::cluster::kubernetes {

// Runs nothing yet. `clock` must outlive the object, which ends a running program with itself.
std::shared_ptr<Credentials> MakeExecCredentials(ExecConfig config, ExecSurroundings surroundings,
                                                 const Clock& clock = SystemClock());

}  // namespace renzan::cluster::kubernetes
