#pragma once

// Turns decisions into transitions of the cluster, one after the other. An environment (a
// Lifecycle, a forecast, a test) only commits and performs them; it decides nothing, and it does
// not change the snapshot: CarryOut() does, the same way everywhere.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A job is asked for a checkpoint. Changes no fact: whether it was written is observed later.
struct CheckpointRequest {
  JobId job;
};

class Environment {
 public:
  virtual ~Environment() = default;

  // Before the snapshot changes: makes the intent durable. May set Snapshot::now to the time at
  // which the transition happens. After an exception, neither this transition nor any later one
  // happens.
  virtual void Commit(const Start&) {}
  virtual void Commit(const Stop&) {}
  virtual void Commit(const Resize&) {}
  virtual void Commit(const NodeChange&) {}
  virtual void Commit(const std::vector<Reservation>&) {}

  // Called after the snapshot has changed. If it cannot be done now, retrying is up to the
  // environment.
  virtual void Perform(const Start&) = 0;
  virtual void Perform(const Stop&) = 0;
  virtual void Perform(const Resize&) = 0;
  virtual void Perform(const CheckpointRequest&) = 0;
  virtual void Perform(const NodeChange&) = 0;
};

// Carries out one transition. Returns false and does nothing if it no longer applies: the job has
// ended meanwhile, or the node is in use again. So carrying out a decision twice has the same
// effect as once.
bool CarryOut(const Start& start, Snapshot& snapshot, Environment& environment);
bool CarryOut(const Stop& stop, Snapshot& snapshot, Environment& environment);
bool CarryOut(const Resize& resize, Snapshot& snapshot, Environment& environment);
bool CarryOut(const ScaleIn& scale, Snapshot& snapshot, Environment& environment);

// Carries out all decisions of a cycle; those that make room come before those that need it.
// Returns whether anything has changed that another cycle would see.
bool CarryOut(const Decisions& decisions, Snapshot& snapshot, Environment& environment);

}  // namespace renzan::cluster
