#pragma once

// One cycle of the scheduler: a pure function. Same snapshot, same decisions. No threads, clock,
// sockets or files.
//
// The line is walked from its head: a job starts where it fits; else where those who are just
// leaving leave room; else where those who must give way to it do (and then it certainly fits);
// else the first such job is given a reservation. What is left grows elastic jobs, is packed,
// bought or given back. Each question has a file of its own in this folder.

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct ScheduleOptions {
  // Growing restarts a gang, so it happens at most so often.
  TimeMs min_between_resizes_ms = 600'000;
  // Jobs on nodes that may vanish are asked for a checkpoint at least so often.
  TimeMs max_checkpoint_interval_ms = 600'000;
  // A job that has been preempted so often is no longer put on what is reserved for another one.
  int max_preemptions_to_backfill = 3;
  // Of the jobs that have waited longer, the first one goes before others of its priority, whatever
  // its queue has.
  TimeMs overdue_after_ms = 24 * 3'600'000;
};

Decisions Schedule(const Snapshot& snapshot, const ScheduleOptions& options = {});

}  // namespace renzan::cluster
