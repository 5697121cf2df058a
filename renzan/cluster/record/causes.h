#pragma once

// The decisions of a cycle, each with its cause as the scheduler knows it: for the decision log,
// for replays, for tables. Pure functions of the cycle.
//
// A decision is one JSON object. Its fields, whose meanings never change:
//
//   time      of the cycle: "2026-01-31T12:34:56.789Z"
//   cycle     its number; each leader counts from 1
//   decision  start, stop, resize, checkpoint, reserve, release (of a reservation), scale_out,
//             scale_in, or wait
//   job       {namespace, name, id}; absent for scale_out and scale_in. A job without a name has
//             only an id
//   pool      scale_out, scale_in: the name
//   nodes     [{node, workers}]: where the job starts, runs (stop, checkpoint), moves to (resize)
//             or has nodes reserved; scale_in: [{node}]. Absent for scale_out and wait
//   count     scale_out: the number of nodes
//   cause     an object with `reason` and what it rests on:
//     of all decisions about a job: priority; level (of service, 0 goes first); queue {name,
//       guaranteed_gpus, limit_gpus, used_gpus} and user {name, max_gpus, used_gpus}, used before
//       the decision, null where unlimited
//     start       reservation (it had one), backfilled (reserved_for: jobs), fits; waited_ms
//     stop        StopReason as a word: preempted, time_shared, reclaimed, reservation, over_cap,
//                 grand_challenge, node_leaving (leaving: [{node, until}]); on_behalf_of: a job
//                 with its priority, level and queue, or null
//     resize      grow, shrink, move; from_workers, to_workers; on_behalf_of
//     stop, resize  leaving: [{node, until}], of the job's nodes that go away; absent if none does
//     checkpoint  interruptible (its nodes may be taken away); last_checkpoint: a time or null
//     reserve     overdue; waited_ms
//     release     started, ended, not_needed
//     scale_out   demand; price_per_hour, waiting_jobs (for nodes that boot)
//     scale_in    idle; idle_ms, price_per_hour
//     wait        WaitReason as a word: infeasible, backoff, queue_limit, user_cap,
//                 guaranteed_quota, resources, fragmented, reserved (blocked_by: a job), pipelined,
//                 nodes_booting, withheld; waited_ms

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

// In the order in which they are carried out; waits last. `wants_wait` selects waits: most jobs
// wait most of the time.
std::vector<nlohmann::ordered_json> DecisionsWithCauses(
    const CycleView& cycle, const std::function<bool(const Wait&)>& wants_wait);

// "ads/train (7)", "train (7)" or "job 7"
std::string JobText(const nlohmann::ordered_json& job);
// The decision's cause in a few words: "preempted for ads/urgent (9), priority 5 over 0".
std::string CauseText(const nlohmann::ordered_json& decision);
// One line that is always valid JSON.
std::string LineOf(const nlohmann::ordered_json& decision);

}  // namespace renzan::cluster::record
