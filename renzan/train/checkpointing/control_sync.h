#pragma once

// The moment between two steps when all workers say what they know, so that all decide the same:
// a SIGTERM that reached one of them stops all at the same step. It is one small exchange, made
// about ten times a second and not after every step.

#include <cstdint>

#include "renzan/comm/communicator.h"
#include "renzan/train/quality/finiteness.h"

namespace renzan {

struct ControlSyncInput {
  bool stop = false;            // was asked to stop
  bool checkpoint = false;      // was asked for a checkpoint
  bool checkpoint_due = false;  // by the clock; worker 0's counts
  bool task_finished = true;    // has done its part of the checkpoint in flight
  int64_t calls_to_next = 1;    // until the roll is called again; worker 0's counts
  Finiteness finiteness;        // of its part of the model
};

struct ControlSyncResult {
  bool any_stop = false, any_checkpoint = false, checkpoint_due = false;
  bool all_finished = true, first_finished = true;
  int64_t calls_to_next = 1;
  Finiteness finiteness;
};

// Every rank calls it after the same step.
ControlSyncResult ControlSync(Communicator& comm, const ControlSyncInput& mine);

}  // namespace renzan
