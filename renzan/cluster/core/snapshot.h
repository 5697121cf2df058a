#pragma once

// What the scheduler looks at: nodes, pools, queues, users and the jobs that are not done, at one
// moment. Plain data; a world (this machine, the simulator) keeps one up to date and reports facts
// into it. Everything that decides is in it: the same snapshot gives the same decisions, always.
//
// Invariants that a world keeps: `jobs` is sorted by id; every index points into its vector; a
// job's workers stand on nodes that are not kGone; the workers of all running, stopping and
// resizing jobs fit into their nodes.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/resources.h"

namespace renzan::cluster {

using JobId = int64_t;
// Milliseconds since the world's epoch (Unix time on a machine, 0 in a simulation).
using TimeMs = int64_t;
inline constexpr TimeMs kNever = std::numeric_limits<TimeMs>::max();
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

using Labels = std::map<std::string, std::string>;

enum class NodeState {
  kReady,
  kBooting,  // bought, not there yet; ready at `until`
  // Nothing starts here. It goes away at `until` (spot notice, scale in), or, if that is kNever, is
  // being emptied by an operator: then who can save its work leaves, and who cannot may end.
  kDraining,
  kGone,      // lost, given back; kept so that indices stay valid
  kCordoned,  // nothing starts here; who runs stays
};

// The machine is there, whether or not anything may start on it.
inline bool IsThere(NodeState state) {
  return state != NodeState::kBooting && state != NodeState::kGone;
}

struct Node {
  std::string name;
  int pool = -1;  // in Snapshot::pools; -1: one of nobody's pool
  Resources capacity;
  Labels labels;  // those of its pool too; the level "host" is the node itself and needs no label
  NodeState state = NodeState::kReady;
  TimeMs until = kNever;  // see NodeState; kNever for an operator's drain
  TimeMs idle_since = 0;  // when its last worker left; meaningless while it has some
  bool spot = false;
};

// A request of node that can be had. Pools that are not `elastic` are machines that one owns.
struct Pool {
  std::string name;
  Resources capacity;
  Labels labels;
  // Nodes are dealt to so many domains of each of these topology levels.
  std::map<std::string, int> domains;
  bool spot = false;
  int min_nodes = 0, max_nodes = 0;  // equal: never scaled
  double price_per_hour = 0;         // of one node
  TimeMs boot_ms = 0;
  TimeMs idle_ms = 600'000;  // an idle node is given back after it
  // Interruptions per node and hour, as measured or assumed; 0 for machines that stay.
  double interruptions_per_hour = 0;
};

struct Queue {
  std::string name;
  // Amount of each kind that is this queue's own whenever it wants it, and that it never exceeds.
  // A kind that no queue guarantees and none limits is not governed by quota. A kind that some
  // queue governs and this one does not mention is guaranteed 0 and unlimited here.
  Resources guaranteed;
  Resources limit = Unlimited();

  static Resources Unlimited() {
    Resources all;
    all.amount.fill(kUnlimited);
    return all;
  }
};

// A higher cap for a while.
struct QuotaOverride {
  int64_t max_gpus = kUnlimited;
  TimeMs until = 0;
};

struct User {
  std::string name;
  int64_t max_gpus = kUnlimited;  // of running jobs
  std::vector<QuotaOverride> quota_overrides;

  // The largest cap in force at `now`.
  int64_t CapAt(TimeMs now) const;
};

// What one worker needs and where it may stand. WorkerRequests are shared by jobs: whatever is
// found out about one job's request holds for all of it.
struct WorkerRequest {
  Resources per_worker;
  Labels required;   // a node has all of them
  Labels preferred;  // the more of them the better
  // All workers in one domain of this topology level ("host", "rack": a node label). Empty: none.
  std::string topology_level;
  bool topology_required = false;  // otherwise preferred

  bool operator==(const WorkerRequest&) const = default;
};

// Some workers of a gang on one node.
struct Placed {
  int node = 0;
  int workers = 0;
  bool operator==(const Placed&) const = default;
};
using Placement = std::vector<Placed>;  // sorted by node, each node once, workers >= 1

int NumWorkers(const Placement& placement);

enum class JobState {
  kPending,
  kRunning,
  kStopping,  // has been told to stop; holds its resources until its processes are gone
  kResizing,  // has been told to stop and starts again at `target`, which is kept for it
};

struct Job {
  JobId id = 0;
  int request = 0;  // in Snapshot::worker_requests
  int queue = 0;
  int user = 0;
  int priority = 0;  // higher goes first
  int min_workers = 1, max_workers = 1;
  // Obeys the launch contract: told to stop, it saves its work. Only such a job is resized or
  // moved, and only if it does so within its grace (SavesWhenStopped) is it preempted without loss
  // or backfilled into a reservation.
  bool checkpoints = false;
  bool preemptible = true;       // false: never stopped on behalf of another job
  bool grand_challenge = false;  // has the whole cluster if it needs it
  TimeMs submitted = 0;      // its place in the queue: with the id; preemption does not change it
  TimeMs grace_ms = 30'000;  // how long it may take to stop
  // Work of more than so long is not to be at risk; the scheduler's own bound holds too.
  TimeMs max_checkpoint_interval_ms = kNever;

  JobState state = JobState::kPending;
  TimeMs eligible_at = 0;  // not started before (back-off)
  std::string held;        // why it may not be started at all; empty: it may

  // While kRunning, kStopping or kResizing:
  Placement placement;
  Placement target;  // kResizing only
  // kStopping, kResizing: the job it makes room for (Stop::on_behalf_of). That one goes first in
  // the line, so that nobody is preempted in vain.
  JobId stopping_for = 0;
  TimeMs started = 0;
  TimeMs last_resize = 0;                 // or start
  std::optional<TimeMs> last_checkpoint;  // none: its work is not saved since `started`
  bool backfilled = false;                // stands on what is reserved for another job

  // Facts that make decisions better; nothing depends on their being right.
  TimeMs restart_cost_ms = 30'000;     // from start to where it had stopped
  TimeMs checkpoint_cost_ms = 5'000;   // of its last one
  int64_t state_bytes = 0;             // of its last full checkpoint
  std::optional<TimeMs> expected_end;  // while running; from its status or timeout
  int preemptions = 0;
};

// Whether a stop loses no work, as far as is known: a checkpoint that takes longer than the grace
// is cut short, and what was done since the one before is lost.
inline bool SavesWhenStopped(const Job& job) {
  return job.checkpoints && job.checkpoint_cost_ms <= job.grace_ms;
}

struct Snapshot {
  TimeMs now = 0;
  std::vector<std::string> resource_names = {"cpu", "memory", "gpu"};
  std::vector<std::string> topology_levels;  // widest first: zone, rack; "host" is implied last
  std::vector<Node> nodes;
  std::vector<Pool> pools;
  std::vector<Queue> queues;
  std::vector<User> users;
  std::vector<WorkerRequest> worker_requests;
  std::vector<Job> jobs;                                             // not done, sorted by id
  double budget_per_hour = std::numeric_limits<double>::infinity();  // for nodes of priced pools

  // The index of an equal request, added if there is none.
  int InternRequest(const WorkerRequest& request);
  // The index of the user of that name, added (without a cap) if there is none.
  int InternUser(const std::string& name);
  // The job of that id, or null.
  const Job* Find(JobId id) const;
  Job* Find(JobId id);
};

}  // namespace renzan::cluster
