#pragma once

// One scheduling cycle: a pure function. Same snapshot, same decisions. No threads, clock, sockets
// or files.
//
// The cycle goes through the pending queue from its head. A job starts if it fits. Otherwise it is
// pipelined onto resources that stopping jobs are releasing, or preempts other jobs (only if it
// then fits), or other jobs move together for it. Whoever is first by priority claims the room of
// jobs that it may not stop. Overdue jobs for which none of this works get reservations. What is
// left over goes to elastic jobs that can grow; then nodes are bought or returned. No job is
// preempted for one that also needs nodes that still boot; a compaction may count on them. Each
// step has its own file in this folder.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct ScheduleOptions {
  // Growing restarts a gang, so a job grows at most this often.
  TimeMs min_between_resizes_ms = 600'000;
  // Jobs on nodes that may be interrupted are asked for a checkpoint at least this often.
  TimeMs max_checkpoint_interval_ms = 600'000;
  // A job that has yielded to reservations this often is no longer backfilled.
  int max_yields_to_backfill = 3;
  // Among the jobs that have waited for longer than this plus four times their service since they
  // last ran, the first goes before other jobs of its priority, regardless of its queue's share.
  TimeMs overdue_after_ms = 24 * 3'600'000;
  ServiceLevelOptions levels;
  // At most this share of the cluster is reserved at a time for overdue jobs that cannot start;
  // more for a single job.
  double max_reserved_share = 0.075;
};

Decisions Schedule(const Snapshot& snapshot, const ScheduleOptions& options = {});

}  // namespace renzan::cluster
