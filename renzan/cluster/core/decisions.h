#pragma once

// What the scheduler decides. The environment (the daemon, the simulator, a test) carries the
// decisions out and updates the snapshot with the result.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Start {
  JobId job;
  Placement placement;    // at least min_workers, at most max_workers
  bool backfill = false;  // uses nodes reserved for another job; recorded in Job::backfilled
};

enum class StopReason {
  kPreempted,    // for a job of higher priority
  kTimeShared,   // for a job of equal priority that has got less service so far
  kReclaimed,    // a queue reclaims its guaranteed quota
  kReservation,  // it was backfilled, and the job with the reservation can start now
  kNodeLeaving,  // spot notice or drain
  kOverCap,      // a quota override has expired
  kGrandChallenge,
  kRequested,  // by a user; never a decision of the scheduler
};
const char* NameOf(StopReason reason);

// SIGTERM, grace period, then back to its old position in the pending queue.
struct Stop {
  JobId job;
  StopReason reason;
  JobId on_behalf_of = 0;         // 0: no job
  std::string requested_by = {};  // kRequested: the user
};

// "preempted for job 12".
std::string TextOf(const Stop& stop);

// Stop with a checkpoint, then restart on `target`.
struct Resize {
  JobId job;
  Placement target;
  JobId on_behalf_of = 0;  // the job that a shrink makes room for; 0: growth, or a draining node
};

// "from 2 workers to 4", "moved off own-0, which is leaving". The job still has its old placement.
std::string TextOf(const Resize& resize, const Snapshot& snapshot);

// Buy nodes.
struct ScaleOut {
  int pool;
  int nodes;
};

// Return an empty node that is not needed.
struct ScaleIn {
  int node;
};

// Why a job does not start. Explain() (explain.h) gives the details.
enum class WaitReason {
  kInfeasible,       // would not fit even on an empty cluster with every pool at its maximum
  kBackoff,          // eligible later
  kQueueLimit,       // its queue has reached its limit
  kUserCap,          // its user has reached the cap
  kGuaranteedQuota,  // not preemptible, and such jobs already use their queue's guaranteed quota
  kResources,        // not enough is free, and no running job may be preempted for it
  kFragmented,       // enough is free in total, but not on nodes (or in a domain) that can hold it
  kReserved,         // the free resources are reserved for another job
  kPipelined,        // pipelined onto resources that other jobs are releasing
  kNodesBooting,     // pipelined onto nodes that are being bought
  kWithheld,         // the decision about it failed validation and is not carried out
};
const char* NameOf(WaitReason reason);

struct Wait {
  JobId job;
  WaitReason reason;
  JobId blocked_by = 0;  // kReserved: the job with the reservation
};

struct Decisions {
  std::vector<Start> starts;
  std::vector<Stop> stops;
  std::vector<Resize> resizes;
  std::vector<JobId> checkpoints;  // SIGUSR1: these should save their work now
  std::vector<ScaleOut> scale_out;
  std::vector<ScaleIn> scale_in;
  std::vector<Reservation> reservations;  // all of them: kept and new
  std::vector<Wait> waits;     // every pending job that does not start, in pending-queue order
  TimeMs look_again = kNever;  // the earliest time at which the passing of time changes a decision
};

}  // namespace renzan::cluster
