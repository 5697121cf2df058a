#pragma once

// What the scheduler wants done. A world carries the decisions out and reports what came of it.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Start {
  JobId job;
  Placement placement;    // at least min_workers, at most max_workers
  bool backfill = false;  // on what is reserved for another job; to be kept in Job::backfilled
};

enum class StopReason {
  kPreempted,    // for a job of higher priority
  kReclaimed,    // for a queue that wants back its own
  kReservation,  // it was backfilled, and the job with the reservation can start now
  kNodeLeaving,  // spot notice or drain
  kOverCap,      // a quota override has expired
  kGrandChallenge,
};
const char* NameOf(StopReason reason);

// SIGTERM, grace, back to the queue with its place in it.
struct Stop {
  JobId job;
  StopReason reason;
  JobId on_behalf_of = 0;  // 0: no job
};

// Stop with a checkpoint and start again at `target` at once.
struct Resize {
  JobId job;
  Placement target;
  JobId on_behalf_of = 0;  // a shrink makes room for it; 0: growth, or a node that leaves
};

// Buy nodes.
struct ScaleOut {
  int pool;
  int nodes;
};

// Nodes that are empty and not needed: to be given back.
struct ScaleIn {
  int node;
};

// Why a job does not start. Details are for Explain() (explain.h).
enum class WaitReason {
  kInfeasible,       // would not fit if the cluster were empty and every pool at its maximum
  kBackoff,          // eligible later
  kQueueLimit,       // its queue is at its limit
  kUserCap,          // its user is at the cap
  kGuaranteedQuota,  // it is not preemptible, and such jobs use all that its queue is guaranteed
  kResources,        // not enough is free, and nobody may be preempted for it
  kFragmented,       // enough is free in sum, but not on nodes (or in a domain) that can hold it
  kReserved,         // what is free is kept for a job that goes first
  kPipelined,        // its place is being vacated
  kNodesBooting,     // its place is being bought
  kWithheld,         // what is decided about it is not carried out: something is at fault
};
const char* NameOf(WaitReason reason);

struct Wait {
  JobId job;
  WaitReason reason;
  JobId blocked_by = 0;  // kReserved: who the place is kept for
};

// Nodes kept for a job that cannot start yet.
struct Reservation {
  JobId job;
  Placement placement;
};

struct Decisions {
  std::vector<Start> starts;
  std::vector<Stop> stops;
  std::vector<Resize> resizes;
  std::vector<JobId> checkpoints;  // SIGUSR1: work at risk is worth more than a checkpoint
  std::vector<ScaleOut> scale_out;
  std::vector<ScaleIn> scale_in;
  std::vector<Reservation> reservations;
  std::vector<Wait> waits;     // every pending job that does not start, in the order of the line
  TimeMs look_again = kNever;  // when time alone could change a decision
};

}  // namespace renzan::cluster
