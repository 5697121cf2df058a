#pragma once

// A small exchange between two steps after which all workers take the same decision: a SIGTERM that
// reached only one of them stops all at the same step. It happens about ten times a second rather
// than after every step.

#include <cstdint>

#include "renzan/comm/communicator.h"
#include "renzan/quality/finiteness.h"

namespace renzan {

struct ControlSyncInput {
  int64_t stops = 0;            // how often a stop was requested here
  bool checkpoint = false;      // a checkpoint was requested here
  bool checkpoint_due = false;  // by time; worker 0 decides
  bool task_finished = true;    // this worker's part of the checkpoint in flight
  bool copies_full = false;     // this worker is over its limit for copies of rows
  int64_t calls_to_next = 1;    // calls of ShouldStop until the next sync; worker 0 decides
  Finiteness finiteness;        // of this worker's part of the model
};

struct ControlSyncResult {
  int64_t stops = 0;  // of all workers
  bool any_checkpoint = false, checkpoint_due = false;
  bool all_finished = true, rank0_finished = true;
  bool any_copies_full = false;
  int64_t calls_to_next = 1;
  Finiteness finiteness;
};

// Every rank calls it after the same step.
ControlSyncResult ControlSync(Communicator& comm, const ControlSyncInput& mine);

}  // namespace renzan
