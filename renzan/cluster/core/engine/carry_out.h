#pragma once

// Decisions become transitions of the cluster, one after the other. An environment (the daemon, a
// simulation, a cluster manager) only commits and performs them; it decides nothing, and it does
// not change the snapshot: CarryOut() does, the same way everywhere.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A checkpoint is asked for. Changes no fact: that it has been written is observed later.
struct CheckpointRequest {
  JobId job;
};

class Environment {
 public:
  virtual ~Environment() = default;

  // Before the snapshot changes: makes the intent durable. May set Snapshot::now to the time at
  // which the transition happens. An exception leaves this transition, and all that would follow,
  // undone.
  virtual void Commit(const Start&) {}
  virtual void Commit(const Stop&) {}
  virtual void Commit(const Resize&) {}
  virtual void Commit(const NodeChange&) {}
  virtual void Commit(const std::vector<Reservation>&) {}

  // After the snapshot has changed. What cannot be done now is the environment's to retry.
  virtual void Perform(const Start&) = 0;
  virtual void Perform(const Stop&) = 0;
  virtual void Perform(const Resize&) = 0;
  virtual void Perform(const CheckpointRequest&) = 0;
  virtual void Perform(const NodeChange&) = 0;
};

// One transition. False, with nothing done, if it does not apply any more: the job has ended
// meanwhile, or the node is in use again. Carrying out the same decision twice is therefore the
// same as once.
bool CarryOut(const Start& start, Snapshot& snapshot, Environment& environment);
bool CarryOut(const Stop& stop, Snapshot& snapshot, Environment& environment);
bool CarryOut(const Resize& resize, Snapshot& snapshot, Environment& environment);
bool CarryOut(const ScaleIn& scale, Snapshot& snapshot, Environment& environment);

// All of a cycle: what makes room comes before what needs it. Returns whether anything has changed
// that another cycle would see.
bool CarryOut(const Decisions& decisions, Snapshot& snapshot, Environment& environment);

}  // namespace renzan::cluster
